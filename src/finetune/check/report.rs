//! A check in, the tables that people read out.

use std::fmt;

use super::Check;
use crate::error::Excerpt;

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { lines, clips, minutes, .. } = self;
        let format = format!("{:?}", self.format).to_lowercase();
        writeln!(
            f,
            "{} ({format}): {lines} lines, {clips} clips to train on, {minutes:.1} minutes",
            self.listing.display()
        )?;
        if let Some(rate) = self.symbols_per_second {
            writeln!(f, "the middle clip has {rate:.1} symbols a second")?;
        }
        writeln!(f, "\n{:<24} {:>7} {:>8}", "speaker", "clips", "minutes")?;
        for total in &self.speakers {
            let name = total.speaker.as_deref().unwrap_or("(none)");
            writeln!(f, "{:<24} {:>7} {:>8.1}", Excerpt(name).to_string(), total.clips, total.minutes)?;
        }
        self.characters(f)?;
        self.problems(f)?;
        match self.is_clean() {
            true => writeln!(f, "\nnothing is wrong"),
            false => {
                let out = lines - clips;
                let counts: Vec<String> =
                    self.counts.iter().map(|(defect, count)| format!("{count} {defect}")).collect();
                let counts =
                    if counts.is_empty() { "characters are lacking".to_owned() } else { counts.join(", ") };
                writeln!(f, "\n{counts}; {out} of {lines} lines are left out")
            }
        }
    }
}

impl Check {
    fn characters(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.lacking.is_empty() {
            return Ok(());
        }
        writeln!(f, "\nthe voice lacks {:>7} {:>7}  {:<10} example", "times", "line", "said as")?;
        for lacking in &self.lacking {
            let character =
                format!("{} U+{:04X}", lacking.character.escape_debug(), u32::from(lacking.character));
            let said = lacking.said_as.as_deref().unwrap_or("(nothing)");
            let (count, line, example) = (lacking.count, lacking.line, Excerpt(&lacking.example));
            writeln!(f, "{character:<15} {count:>7} {line:>7}  {said:<10} {example}")?;
        }
        Ok(())
    }

    fn problems(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.problems.is_empty() {
            return Ok(());
        }
        writeln!(f, "\n{:>7}  {:<11} {:<9} reason", "line", "wrong", "left out")?;
        for problem in &self.problems {
            let out = if problem.left_out { "yes" } else { "no" };
            writeln!(f, "{:>7}  {:<11} {out:<9} {}", problem.line, problem.defect, problem.reason)?;
        }
        Ok(())
    }
}
