use super::*;

/// `encode` and `decode` of a format whose codes `0..=max_finite` are its non-negative finite values.
struct Format {
    name: &'static str,
    max_finite: u32,
    sign: u32,
    encode: fn(f32) -> u32,
    decode: fn(u32) -> f32,
}

const FORMATS: [Format; 4] = [
    Format {
        name: "f16",
        max_finite: 0x7bff,
        sign: 0x8000,
        encode: |v| f32_to_f16(v).to_bits().into(),
        decode: |c| f16::from_bits(c as u16).to_f32(),
    },
    Format {
        name: "bf16",
        max_finite: 0x7f7f,
        sign: 0x8000,
        encode: |v| f32_to_bf16(v).to_bits().into(),
        decode: |c| bf16::from_bits(c as u16).to_f32(),
    },
    Format {
        name: "e4m3",
        max_finite: 0x7e,
        sign: 0x80,
        encode: |v| f32_to_e4m3(v, Overflow::Saturate).into(),
        decode: |c| e4m3_to_f32(c as u8),
    },
    Format {
        name: "e5m2",
        max_finite: 0x7b,
        sign: 0x80,
        encode: |v| f32_to_e5m2(v, Overflow::Saturate).into(),
        decode: |c| e5m2_to_f32(c as u8),
    },
];

#[test]
fn every_code_is_read_and_written_back() {
    for Format { name, max_finite, sign, encode, decode } in FORMATS {
        for code in (0..=max_finite).chain(sign..=sign | max_finite) {
            assert_eq!(encode(decode(code)), code, "{name} code {code:#06x}");
        }
    }
}

#[test]
fn values_between_two_codes_go_to_the_nearer_and_ties_to_the_even_one() {
    for Format { name, max_finite, sign, encode, decode } in FORMATS {
        for low in 0..max_finite {
            let high = low + 1;
            let midpoint = (f64::from(decode(low)) + f64::from(decode(high))) / 2.0;
            let tie = midpoint as f32;
            assert_eq!(f64::from(tie), midpoint, "{name}: the tie above {low:#06x} is an f32");
            let even = if low % 2 == 0 { low } else { high };
            for (value, expected) in [(tie, even), (tie.next_down(), low), (tie.next_up(), high)] {
                assert_eq!(encode(value), expected, "{name} of {value:e}");
                assert_eq!(encode(-value), sign | expected, "{name} of {:e}", -value);
            }
        }
    }
}

#[test]
fn nan_stays_nan_with_its_sign_in_every_format() {
    for Format { name, sign, encode, decode, .. } in FORMATS {
        for bits in [0x7fc0_0000_u32, 0x7f80_0001, 0x7fff_ffff, 0xffc0_0000, 0xff80_0001] {
            let code = encode(f32::from_bits(bits));
            assert!(decode(code).is_nan(), "{name} of {bits:#x} is {code:#x}");
            assert_eq!(code & sign != 0, bits >> 31 == 1, "{name} of {bits:#x} is {code:#x}");
        }
    }
}

const HALF_AND_BYTE: [Dtype; 4] = [Dtype::F16, Dtype::BF16, Dtype::E4M3, Dtype::E5M2];

/// Values over the whole range of f32, in a length that leaves a partial block.
fn spread() -> Vec<f32> {
    (0..2 * BLOCK as u32 + 37).map(|i| f32::from_bits(i.wrapping_mul(0x9e37_79b9))).collect()
}

#[test]
fn a_slice_is_cast_as_its_elements_are() {
    let values = spread();
    for dtype in HALF_AND_BYTE {
        let together = from_f32(&values, dtype).unwrap();
        let alone: Vec<u8> = values.iter().flat_map(|&v| from_f32(&[v], dtype).unwrap()).collect();
        assert_eq!(together, alone, "{dtype}");
        let back: Vec<u32> = to_f32(&together, dtype).unwrap().into_iter().map(f32::to_bits).collect();
        let size = dtype.size_bytes();
        let alone: Vec<u32> =
            together.chunks(size).map(|code| to_f32(code, dtype).unwrap()[0].to_bits()).collect();
        assert_eq!(back, alone, "{dtype}");
    }
}

#[test]
fn a_round_trip_in_place_equals_a_cast_there_and_back() {
    for dtype in HALF_AND_BYTE.into_iter().chain([Dtype::F32, Dtype::F64]) {
        let values: Vec<f32> = spread().into_iter().filter(|v| !v.is_nan()).collect();
        let there_and_back = to_f32(&from_f32(&values, dtype).unwrap(), dtype).unwrap();
        let mut in_place = values;
        round_trip(&mut in_place, dtype).unwrap();
        assert_eq!(in_place, there_and_back, "{dtype}");
    }
}

#[test]
fn bytes_are_little_endian() {
    for (dtype, bytes) in [
        (Dtype::F64, vec![0, 0, 0, 0, 0, 0, 0xf8, 0xbf]),
        (Dtype::F32, vec![0, 0, 0xc0, 0xbf]),
        (Dtype::F16, vec![0, 0xbe]),
        (Dtype::BF16, vec![0xc0, 0xbf]),
        (Dtype::E4M3, vec![0xbc]),
        (Dtype::E5M2, vec![0xbe]),
    ] {
        assert_eq!(from_f32(&[-1.5], dtype).unwrap(), bytes, "{dtype}");
        assert_eq!(to_f32(&bytes, dtype).unwrap(), [-1.5], "{dtype}");
    }
}

#[test]
fn f64_is_rounded_to_the_nearest_f32() {
    let bytes: Vec<u8> = [0.1_f64, 1e300, -1e-50].iter().flat_map(|v| v.to_le_bytes()).collect();
    assert_eq!(to_f32(&bytes, Dtype::F64).unwrap(), [0.1, f32::INFINITY, 0.0]);
}

#[test]
fn what_holds_no_real_numbers_is_refused_by_name() {
    for dtype in [Dtype::C64, Dtype::I64, Dtype::I32, Dtype::I16, Dtype::I8, Dtype::U8, Dtype::Bool] {
        for refused in [
            from_f32(&[1.0], dtype).unwrap_err(),
            to_f32(&[0; 8], dtype).unwrap_err(),
            round_trip(&mut [1.0], dtype).unwrap_err(),
        ] {
            assert!(refused.to_string().contains(&dtype.to_string()), "{refused}");
        }
    }
}

#[test]
fn bytes_that_end_within_an_element_are_refused_with_their_count() {
    for dtype in [Dtype::F64, Dtype::F32, Dtype::F16, Dtype::BF16] {
        let refused = to_f32(&[0; 9], dtype).unwrap_err().to_string();
        assert!(refused.starts_with("9 bytes") && refused.contains(&dtype.to_string()), "{refused}");
    }
}
