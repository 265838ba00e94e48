//! A table of numbers in, a PNG of it out.
//!
//! Rows run upwards, as frequencies of a mel and tokens of an attention do. The colours are viridis; what is not finite
//! is red. Never smooths: a number is a block of pixels of one colour.

use std::io::Cursor;

use crate::error::{Error, Result};

/// Viridis (van der Walt and Smith, 2015) at 0, 1/8, … 1.
const COLOURS: [[u8; 3]; 9] = [
    [68, 1, 84],
    [71, 44, 122],
    [59, 81, 139],
    [44, 113, 142],
    [33, 144, 141],
    [39, 173, 129],
    [92, 200, 99],
    [170, 220, 50],
    [253, 231, 37],
];
const NOT_FINITE: [u8; 3] = [255, 0, 0];
/// Between two tables of one picture.
const GAP: [u8; 3] = [255, 255, 255];
const GAP_PIXELS: usize = 4;
/// Tables smaller than this are enlarged by a whole factor.
const WANTED_PIXELS: usize = 320;
const MAX_PIXELS: usize = 64 << 20;

/// An encoded picture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Picture {
    /// Width and height, pixels.
    pub size: [u32; 2],
    pub png: Vec<u8>,
}

/// Draws tables of `columns` numbers a row, row 0 at the bottom of its table, the first table on top, all on one scale.
///
/// # Errors
/// [`Error::Internal`] for a table without a number, with half a row, or too large to be looked at.
pub fn draw(tables: &[&[f32]], columns: usize) -> Result<Picture> {
    let whole = |table: &&[f32]| !table.is_empty() && table.len().is_multiple_of(columns);
    if tables.is_empty() || columns == 0 || !tables.iter().all(whole) {
        return Err(Error::Internal(format!("a picture of tables that are not rows of {columns} numbers")));
    }
    let rows: usize = tables.iter().map(|table| table.len() / columns).sum();
    let factor = (WANTED_PIXELS / columns.max(rows)).max(1);
    let width = columns * factor;
    let gaps = (tables.len() - 1) * GAP_PIXELS;
    let height = rows * factor + gaps;
    if width.saturating_mul(height) > MAX_PIXELS {
        return Err(Error::Internal(format!("a picture of {width} x {height} pixels")));
    }
    let finite = || tables.iter().flat_map(|table| table.iter().copied()).filter(|value| value.is_finite());
    let (low, high) = (finite().fold(f32::INFINITY, f32::min), finite().fold(f32::NEG_INFINITY, f32::max));

    let mut pixels = Vec::with_capacity(width * height * 3);
    for (index, table) in tables.iter().enumerate() {
        if index > 0 {
            pixels.extend(std::iter::repeat_n(GAP, GAP_PIXELS * width).flatten());
        }
        for row in table.chunks_exact(columns).rev() {
            let colours = row.iter().map(|value| colour(*value, low, high));
            let line: Vec<u8> =
                colours.flat_map(|colour| std::iter::repeat_n(colour, factor)).flatten().collect();
            pixels.extend(std::iter::repeat_n(&line, factor).flatten());
        }
    }
    let side = |pixels: usize| u32::try_from(pixels).unwrap_or(u32::MAX);
    let size = [side(width), side(height)];
    let png = encoded(size, &pixels)
        .map_err(|e| Error::Internal(format!("a picture could not be encoded: {e}")))?;
    Ok(Picture { size, png })
}

fn colour(value: f32, low: f32, high: f32) -> [u8; 3] {
    if !value.is_finite() {
        return NOT_FINITE;
    }
    // In f64, where the distance between any two finite f32 is finite.
    let (value, low, high) = (f64::from(value), f64::from(low), f64::from(high));
    let share = if high > low { (value - low) / (high - low) } else { 0.0 };
    let place = share * (COLOURS.len() - 1) as f64;
    let index = (place as usize).min(COLOURS.len() - 2);
    let past = place - index as f64;
    let [from, to] = [COLOURS[index], COLOURS[index + 1]];
    std::array::from_fn(|channel| {
        let (from, to) = (f64::from(from[channel]), f64::from(to[channel]));
        (from + (to - from) * past).round() as u8
    })
}

fn encoded([width, height]: [u32; 2], pixels: &[u8]) -> Result<Vec<u8>, png::EncodingError> {
    let mut bytes = Cursor::new(Vec::new());
    let mut encoder = png::Encoder::new(&mut bytes, width, height);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    let mut writer = encoder.write_header()?;
    writer.write_image_data(pixels)?;
    writer.finish()?;
    Ok(bytes.into_inner())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pixels(picture: &Picture) -> Vec<u8> {
        let mut reader = png::Decoder::new(Cursor::new(&picture.png)).read_info().unwrap();
        let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
        let info = reader.next_frame(&mut pixels).unwrap();
        assert_eq!([info.width, info.height], picture.size);
        pixels
    }

    #[test]
    fn the_first_row_is_at_the_bottom_and_each_number_is_a_block() {
        let picture = draw(&[&[0.0, 1.0, f32::NAN, 0.5]], 2).unwrap();
        assert_eq!(picture.size, [320, 320]);
        let pixels = pixels(&picture);
        let at = |x: usize, y: usize| &pixels[(y * 320 + x) * 3..][..3];
        assert_eq!([at(0, 319), at(159, 160)], [COLOURS[0]; 2]);
        assert_eq!([at(160, 319), at(319, 160)], [COLOURS[8]; 2]);
        assert_eq!([at(0, 0), at(159, 159)], [NOT_FINITE; 2]);
        assert_eq!(at(160, 0), COLOURS[4]);
    }

    #[test]
    fn tables_share_a_scale_and_a_gap_keeps_them_apart() {
        let picture = draw(&[&[0.0; 400], &[2.0; 400]], 400).unwrap();
        assert_eq!(picture.size, [400, 6]);
        let pixels = pixels(&picture);
        let line = |y: usize| &pixels[y * 1200..][..3];
        assert_eq!([line(0), line(1), line(5)], [COLOURS[0], GAP, COLOURS[8]]);
    }

    #[test]
    fn a_flat_table_and_the_widest_range_have_a_colour() {
        assert_eq!(colour(3.0, 3.0, 3.0), COLOURS[0]);
        assert_eq!(colour(f32::MAX, f32::MIN, f32::MAX), COLOURS[8]);
        draw(&[&[f32::NAN]], 1).unwrap();
        for (tables, columns) in
            [(vec![], 1), (vec![&[][..]], 1), (vec![&[1.0][..]], 2), (vec![&[1.0][..]], 0)]
        {
            assert!(draw(&tables, columns).is_err());
        }
    }
}
