//! A sign, a currency or a unit in, its words out.
//!
//! Never holds a letter that is read as a word without a number before it.

/// Signs that have a name of their own.
pub const SIGNS: &[(char, &str)] = &[
    ('%', "percent"),
    ('&', "and"),
    ('@', "at"),
    ('+', "plus"),
    ('=', "equals"),
    ('<', "less than"),
    ('>', "greater than"),
    ('/', "slash"),
    ('\\', "backslash"),
    ('°', "degrees"),
    ('×', "times"),
    ('÷', "divided by"),
    ('±', "plus or minus"),
    ('§', "section"),
    ('©', "copyright"),
    ('®', "registered"),
    ('⁄', "over"),
    ('≈', "approximately"),
    ('≤', "at most"),
    ('≥', "at least"),
    ('^', "caret"),
    ('←', "left arrow"),
    ('↑', "up arrow"),
    ('↓', "down arrow"),
    ('↔', "left right arrow"),
];

/// Sign, one of it, many of it, a hundredth of it.
pub const CURRENCIES: &[(char, &str, &str, &str)] = &[
    ('$', "dollar", "dollars", "cent"),
    ('€', "euro", "euros", "cent"),
    ('£', "pound", "pounds", "penny"),
    ('¥', "yen", "yen", ""),
    ('¢', "cent", "cents", ""),
    ('₹', "rupee", "rupees", "paisa"),
    ('₩', "won", "won", ""),
    ('₽', "ruble", "rubles", "kopeck"),
    ('₺', "lira", "lira", ""),
    ('₪', "shekel", "shekels", ""),
    ('₦', "naira", "naira", ""),
    ('₫', "dong", "dong", ""),
    ('₱', "peso", "pesos", ""),
    ('₴', "hryvnia", "hryvnias", ""),
    ('₿', "bitcoin", "bitcoins", ""),
];

/// Words between an amount and its currency.
pub const MAGNITUDES: &[&str] = &["hundred", "thousand", "million", "billion", "trillion"];

/// Magnitudes of amounts, right after the digits: `$5M`.
pub const MAGNITUDE_LETTERS: &[(&str, &str)] =
    &[("k", "thousand"), ("m", "million"), ("b", "billion"), ("bn", "billion"), ("t", "trillion")];

/// Units that are read out only right after a number.
pub const UNITS: &[(&str, &str)] = &[
    ("km", "kilometers"),
    ("cm", "centimeters"),
    ("mm", "millimeters"),
    ("kg", "kilograms"),
    ("mg", "milligrams"),
    ("lb", "pounds"),
    ("lbs", "pounds"),
    ("ft", "feet"),
    ("mph", "miles per hour"),
    ("hz", "hertz"),
    ("khz", "kilohertz"),
    ("mhz", "megahertz"),
    ("ghz", "gigahertz"),
    ("kb", "kilobytes"),
    ("mb", "megabytes"),
    ("gb", "gigabytes"),
    ("tb", "terabytes"),
    ("ms", "milliseconds"),
    ("ml", "milliliters"),
    ("µm", "micrometers"),
    ("μm", "micrometers"),
    ("µs", "microseconds"),
    ("μs", "microseconds"),
    ("µg", "micrograms"),
    ("μg", "micrograms"),
    ("Ω", "ohms"),
    ("\u{2126}", "ohms"),
    ("am", "A M"),
    ("pm", "P M"),
];
