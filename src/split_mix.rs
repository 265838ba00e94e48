//! A counter in, random bits out: SplitMix64 (Steele, Lea and Flood, 2014), without its state.
//!
//! What is drawn depends on the counter alone, so it can be drawn again. Never for secrets.

/// 2⁶⁴ divided by the golden ratio: the increment from one draw to the next.
pub const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// The output function.
pub fn mix(value: u64) -> u64 {
    let mut z = value.wrapping_add(GOLDEN);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
