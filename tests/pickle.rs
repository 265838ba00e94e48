//! `pytorch_model.bin`: what is read, what is refused, and that nothing makes it panic.

use std::borrow::Cow;
use std::io::{Cursor, Write};
use std::path::Path;

use mezzavoce::error::{Error, Result};
use mezzavoce::precision::Dtype;
use mezzavoce::voice::checkpoint::Checkpoint;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

fn parse(bytes: Vec<u8>) -> Result<Checkpoint> {
    Checkpoint::parse(Path::new("pytorch_model.bin"), Cow::Owned(bytes))
}

fn refused(bytes: Vec<u8>, fragments: &[&str]) {
    match parse(bytes) {
        Err(Error::InvalidVoice { reason, .. }) => {
            for fragment in fragments {
                assert!(reason.contains(fragment), "{reason:?} does not say {fragment:?}");
            }
        }
        other => panic!("expected a refusal that says {fragments:?}, got {other:?}"),
    }
}

fn archive(entries: &[(&str, &[u8])]) -> Vec<u8> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    let stored = SimpleFileOptions::default().compression_method(CompressionMethod::Stored);
    for (name, bytes) in entries {
        zip.start_file(*name, stored).unwrap();
        zip.write_all(bytes).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

/// An archive of `pickle` and one storage of the f32 values 0, 1, … 5.
fn with_pickle(pickle: &[u8]) -> Vec<u8> {
    archive(&[
        ("m/data.pkl", pickle),
        ("m/byteorder", b"little"),
        ("m/version", b"3\n"),
        ("m/data/0", &floats(&[0.0, 1.0, 2.0, 3.0, 4.0, 5.0])),
    ])
}

fn floats(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

fn text(text: &str) -> Vec<u8> {
    [b"X".as_slice(), &u32::try_from(text.len()).unwrap().to_le_bytes(), text.as_bytes()].concat()
}

fn int(value: i64) -> Vec<u8> {
    [b"\x8a\x08".as_slice(), &value.to_le_bytes()].concat()
}

fn tuple(items: &[Vec<u8>]) -> Vec<u8> {
    [b"(".to_vec(), items.concat(), b"t".to_vec()].concat()
}

fn ints(values: &[i64]) -> Vec<u8> {
    tuple(&values.iter().map(|value| int(*value)).collect::<Vec<_>>())
}

/// A window on a storage, as torch writes it.
struct Window<'a> {
    storage_type: &'a str,
    key: &'a str,
    elements: i64,
    offset: i64,
    shape: &'a [i64],
    strides: &'a [i64],
}

const WHOLE: Window =
    Window { storage_type: "FloatStorage", key: "0", elements: 6, offset: 0, shape: &[6], strides: &[1] };

impl Window<'_> {
    fn pickle(&self) -> Vec<u8> {
        let storage_type = format!("ctorch\n{}\n", self.storage_type).into_bytes();
        let id = tuple(&[text("storage"), storage_type, text(self.key), text("cpu"), int(self.elements)]);
        let arguments = tuple(&[
            [id, b"Q".to_vec()].concat(),
            int(self.offset),
            ints(self.shape),
            ints(self.strides),
            b"\x89".to_vec(),
            b"ccollections\nOrderedDict\n)R".to_vec(),
        ]);
        [b"ctorch._utils\n_rebuild_tensor_v2\n".to_vec(), arguments, b"R".to_vec()].concat()
    }
}

fn dict(items: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let items: Vec<u8> =
        items.iter().flat_map(|(name, value)| [text(name), value.clone()].concat()).collect();
    [b"\x80\x02}(".to_vec(), items, b"u.".to_vec()].concat()
}

fn of_window(window: &Window) -> Vec<u8> {
    with_pickle(&dict(&[("w", window.pickle())]))
}

fn f32_of(window: &Window) -> Vec<f32> {
    parse(of_window(window)).unwrap().f32("w").unwrap()
}

#[test]
fn reads_the_same_bits_as_the_safetensors_of_the_same_model() {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let load = |file: &str| {
        let path = data.join(file);
        Checkpoint::parse(&path, Cow::Owned(std::fs::read(&path).unwrap())).unwrap()
    };
    let torch = load("speecht5_tiny_bin/pytorch_model.bin");
    let safetensors = load("speecht5_tiny/model.safetensors");
    assert_eq!(torch.names().collect::<Vec<_>>(), safetensors.names().collect::<Vec<_>>());
    assert_eq!(torch.names().count(), 120);
    for name in safetensors.names() {
        let (one, other) = (torch.tensor(name).unwrap(), safetensors.tensor(name).unwrap());
        assert_eq!((one.dtype, one.shape, one.data), (other.dtype, other.shape, other.data), "{name}");
    }
}

#[test]
fn gathers_what_is_strided_and_copies_nothing_else() {
    assert_eq!(f32_of(&WHOLE), [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
    assert_eq!(
        f32_of(&Window { offset: 2, shape: &[2, 2], strides: &[2, 1], ..WHOLE }),
        [2.0, 3.0, 4.0, 5.0]
    );
    let transposed = Window { shape: &[3, 2], strides: &[1, 3], ..WHOLE };
    assert_eq!(f32_of(&transposed), [0.0, 3.0, 1.0, 4.0, 2.0, 5.0]);
    assert_eq!(f32_of(&Window { offset: 1, shape: &[3], strides: &[2], ..WHOLE }), [1.0, 3.0, 5.0]);
    assert_eq!(
        f32_of(&Window { offset: 4, shape: &[2, 2], strides: &[0, 1], ..WHOLE }),
        [4.0, 5.0, 4.0, 5.0]
    );
    assert_eq!(f32_of(&Window { offset: 5, shape: &[], strides: &[], ..WHOLE }), [5.0]);
    assert_eq!(f32_of(&Window { offset: 5, shape: &[1, 1], strides: &[77, 9], ..WHOLE }), [5.0]);
    assert_eq!(f32_of(&Window { offset: 6, shape: &[0, 4], strides: &[4, 1], ..WHOLE }), [0.0; 0]);
}

#[test]
fn tensors_may_share_a_storage_and_be_parameters() {
    let parameter = [
        b"ctorch._utils\n_rebuild_parameter\n".to_vec(),
        tuple(&[
            Window { shape: &[2], ..WHOLE }.pickle(),
            b"\x88".to_vec(),
            b"ccollections\nOrderedDict\n)R".to_vec(),
        ]),
        b"R".to_vec(),
    ]
    .concat();
    let checkpoint = parse(with_pickle(&dict(&[("a", WHOLE.pickle()), ("b", parameter)]))).unwrap();
    assert_eq!(checkpoint.f32("a").unwrap().len(), 6);
    assert_eq!(checkpoint.f32("b").unwrap(), [0.0, 1.0]);
}

#[test]
fn reads_an_ordered_dict_with_metadata_in_protocol_4() {
    let metadata = [b"}".to_vec(), text("_metadata"), b"ccollections\nOrderedDict\n)Rs".to_vec()].concat();
    let root = [text("collections"), text("OrderedDict"), b"\x93\x94)R".to_vec()].concat();
    let item = [b"\x8c\x01w".to_vec(), WHOLE.pickle(), b"s".to_vec()].concat();
    let pickle = [b"\x80\x04\x95".to_vec(), vec![0; 8], root, item, metadata, b"b.".to_vec()].concat();
    assert_eq!(parse(with_pickle(&pickle)).unwrap().f32("w").unwrap().len(), 6);
}

#[test]
fn reads_every_kind_of_storage() {
    for (storage_type, dtype, width) in [
        ("DoubleStorage", Dtype::F64, 8),
        ("FloatStorage", Dtype::F32, 4),
        ("HalfStorage", Dtype::F16, 2),
        ("BFloat16Storage", Dtype::BF16, 2),
        ("LongStorage", Dtype::I64, 8),
        ("IntStorage", Dtype::I32, 4),
        ("ShortStorage", Dtype::I16, 2),
        ("CharStorage", Dtype::I8, 1),
        ("ByteStorage", Dtype::U8, 1),
        ("BoolStorage", Dtype::Bool, 1),
    ] {
        let elements = 24 / width;
        let window = Window { storage_type, elements, shape: &[elements], ..WHOLE };
        let checkpoint = parse(of_window(&window)).unwrap();
        let tensor = checkpoint.tensor("w").unwrap();
        assert_eq!((tensor.dtype, tensor.data.len()), (dtype, 24));
    }
}

#[test]
fn what_is_not_weights_is_refused_by_its_name() {
    let call = |global: &str| [b"\x80\x02c".as_slice(), global.as_bytes(), b"X\x02\0\0\0id\x85R."].concat();
    let cases: &[(Vec<u8>, &str)] = &[
        (call("os\nsystem\n"), "`os.system`"),
        (call("posix\nsystem\n"), "`posix.system`"),
        (call("builtins\neval\n"), "`builtins.eval`"),
        (call("torch\nload\n"), "`torch.load`"),
        (call("torch._utils\n_rebuild_tensor_v2.__globals__\n"), "_rebuild_tensor_v2.__globals__"),
        (call("torch\nFloatStorage\n"), "REDUCE of StorageType(F32)"),
        (call("collections\nOrderedDict\n"), "REDUCE of OrderedDict"),
        (b"\x80\x04\x8c\x02os\x8c\x06system\x93.".to_vec(), "`os.system`"),
        (b"\x80\x04\x8c\x02os)\x93.".to_vec(), "STACK_GLOBAL without two names"),
        (b"\x80\x02(X\x02\0\0\0idios\nsystem\n.".to_vec(), "INST"),
        (b"\x80\x02(cos\n".to_vec(), "cut short"),
        (b"\x80\x02(ccollections\nOrderedDict\no.".to_vec(), "OBJ"),
        (b"\x80\x02ccollections\nOrderedDict\n)\x81.".to_vec(), "NEWOBJ"),
        (b"\x80\x02\x82\x01.".to_vec(), "EXT1"),
        (b"\x80\x02\x83\x01\0.".to_vec(), "EXT2"),
        (b"\x80\x02\x84\x01\0\0\0.".to_vec(), "EXT4"),
        (b"\x80\x02P0\n.".to_vec(), "PERSID"),
        (b"\x80\x022.".to_vec(), "DUP"),
        (b"\x80\x02\xff.".to_vec(), "0xff"),
        (b"\x80\x07.".to_vec(), "protocol 7"),
        (b"\x80\x02K\x01)R.".to_vec(), "not a global"),
        (b"\x80\x02}}b.".to_vec(), "BUILD on something other than an OrderedDict"),
        (b"\x80\x02ccollections\nOrderedDict\n)R}X\x01\0\0\0xNsb.".to_vec(), "other than `_metadata`"),
        (b"\x80\x02K\x01Q.".to_vec(), "persistent id"),
        (b"\x80\x02h\x09.".to_vec(), "memo entry 9"),
        (b"\x80\x02R.".to_vec(), "empty stack"),
        (b"\x80\x02(K\x01(R.".to_vec(), "empty stack"),
        (b"\x80\x02t.".to_vec(), "did not open"),
        (b"\x80\x02}(K\x01u.".to_vec(), "without a value"),
        (b"\x80\x02K\x01K\x01K\x01s.".to_vec(), "not a dict"),
        (b"\x80\x02\x8a\x09123456789.".to_vec(), "64 bits"),
        (b"\x80\x02X\xff\xff\xff\xffab".to_vec(), "cut short"),
        (b"\x80\x02K\x01.".to_vec(), "not a dict of tensors"),
        (b"\x80\x02}K\x01K\x01s.".to_vec(), "name is not a string"),
        (dict(&[("model", b"}".to_vec())]), "`model` is not a tensor"),
        (dict(&[("w", WHOLE.pickle()), ("w", WHOLE.pickle())]), "`w` occurs twice"),
        (vec![b')'; (2 << 20) + 1], "above the limit"),
    ];
    for (pickle, fragment) in cases {
        refused(with_pickle(pickle), &[fragment]);
    }
}

#[test]
fn values_nested_a_million_deep_or_in_themselves_are_no_trap() {
    let nested = [b"\x80\x02N".to_vec(), vec![0x85; 1_000_000], b".".to_vec()].concat();
    refused(with_pickle(&nested), &["not a dict of tensors"]);
    refused(with_pickle(b"\x80\x02}q\x00X\x01\0\0\0xh\x00s."), &["`x` is not a tensor"]);
}

#[test]
fn a_tensor_stays_in_its_storage() {
    let huge = 1 << 62;
    let cases: &[(Window, &str)] = &[
        (Window { offset: 1, ..WHOLE }, "leaves its storage"),
        (Window { shape: &[7], ..WHOLE }, "leaves its storage"),
        (Window { shape: &[3, 2], strides: &[2, 2], ..WHOLE }, "leaves its storage"),
        (Window { offset: -1, ..WHOLE }, "offset of -1"),
        (Window { shape: &[-6], ..WHOLE }, "-6"),
        (Window { strides: &[-1], ..WHOLE }, "-1"),
        (Window { shape: &[huge, huge], strides: &[0, 0], ..WHOLE }, "overflows"),
        (Window { shape: &[2, 2], strides: &[huge, huge], ..WHOLE }, "leaves its storage"),
        (Window { shape: &[8, 8], strides: &[huge, huge], ..WHOLE }, "overflows"),
        (Window { shape: &[1 << 40], strides: &[0], ..WHOLE }, "repeats elements"),
        (Window { shape: &[2, 3], ..WHOLE }, "differ in rank"),
        (Window { shape: &[1; 9], strides: &[1; 9], ..WHOLE }, "9 dimensions"),
        (Window { key: "1", ..WHOLE }, "`data/1` is missing"),
        (Window { key: "../version", ..WHOLE }, "`data/../version` is missing"),
        (Window { elements: 7, ..WHOLE }, "has 24 bytes"),
        (Window { elements: huge, ..WHOLE }, "has 24 bytes"),
        (Window { elements: -6, ..WHOLE }, "-6"),
        (Window { storage_type: "HalfStorage", ..WHOLE }, "has 24 bytes"),
        (Window { storage_type: "UntypedStorage", ..WHOLE }, "`torch.UntypedStorage`"),
    ];
    for (window, fragment) in cases {
        refused(of_window(window), &[fragment]);
    }
}

#[test]
fn an_archive_that_torch_did_not_write_is_refused() {
    let pickle = dict(&[("w", WHOLE.pickle())]);
    let storage = floats(&[0.0; 6]);
    type Entries<'a> = &'a [(&'a str, &'a [u8])];
    let cases: &[(Entries, &str)] = &[
        (&[], "not"),
        (&[("m/constants.pkl", &pickle)], "without `<name>/data.pkl`"),
        (&[("data.pkl", &pickle)], "without `<name>/data.pkl`"),
        (&[("m/data.pkl", &pickle), ("n/data.pkl", &pickle)], "more than one data.pkl"),
        (&[("m/data.pkl", &pickle), ("m/code/model.py", b"")], "TorchScript"),
        (&[("m/data.pkl", &pickle), ("m/byteorder", b"big")], "byteorder is `big`"),
        (&[("m/data.pkl", &pickle), ("m/version", b"11\n")], "archive version"),
        (&[("m/data.pkl", &pickle), ("m/version", b"-\xff")], "archive version"),
        (&[("m/data.pkl", &pickle), ("n/data/0", &storage)], "`data/0` is missing"),
    ];
    for (entries, fragment) in cases {
        refused(archive(entries), &[fragment]);
    }
}

#[test]
fn a_compressed_or_damaged_entry_is_refused() {
    let whole = of_window(&WHOLE);
    // The method lies 8 bytes into a local header and 10 into a central one.
    let mut deflated = whole.clone();
    for (signature, method) in [(b"PK\x03\x04", 8), (b"PK\x01\x02", 10)] {
        let at = whole.windows(4).position(|bytes| bytes == signature).unwrap() + method;
        deflated[at] = 8;
    }
    refused(deflated, &["m/data.pkl", "compressed"]);

    let values = floats(&[0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
    let at = whole.windows(values.len()).position(|bytes| bytes == values).unwrap();
    let mut flipped = whole.clone();
    flipped[at] ^= 1;
    refused(flipped, &["data/0", "checksum"]);

    refused(whole[..whole.len() - 30].to_vec(), &["not a sound zip"]);
}

#[test]
fn other_kinds_of_file_are_refused_as_what_they_are() {
    for (bytes, fragment) in [
        (b"".as_slice(), "empty"),
        (b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19.\x80\x02M\xe9\x03.", "before version 1.6"),
        (b"\x80\x04\x95\x10\0\0\0\0\0\0\0}.", "pickle"),
        (b"\x1f\x8b\x08\0\0\0\0\0\0\x03", "gzip"),
        (b"version https://git-lfs.github.com/spec/v1\n", "Git LFS"),
        (b"<!doctype html><html></html>", "web page"),
        (b"GGUF\x03\0\0\0\x01\0\0\0", "GGUF"),
        (b"\x08\x08\x12\x07pytorch", "ONNX"),
        (b"hello, world", "not safetensors"),
    ] {
        refused(bytes.to_vec(), &[fragment]);
    }
}

/// Steele, Lea and Flood's SplitMix64.
fn next(state: &mut u64) -> usize {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    usize::try_from((z ^ (z >> 31)) >> 1).unwrap()
}

#[test]
fn mutations_of_a_file_are_read_or_refused() {
    let mut state = 1;
    let pickle =
        dict(&[("w", WHOLE.pickle()), ("t", Window { shape: &[3, 2], strides: &[1, 3], ..WHOLE }.pickle())]);
    let zip = with_pickle(&pickle);
    let (mut read, mut turned_away) = (0, 0);
    let mut try_one = |bytes: Vec<u8>| match parse(bytes) {
        Ok(checkpoint) => {
            read += 1;
            for name in checkpoint.names() {
                // Integers have no f32 form, which is an error and not a panic.
                drop(checkpoint.f32(name));
            }
        }
        Err(Error::InvalidVoice { .. }) => turned_away += 1,
        Err(other) => panic!("{other}"),
    };
    for _ in 0..2_000 {
        // Half of them behind a sound checksum, so that the pickle itself is reached.
        let inside = next(&mut state).is_multiple_of(2);
        let mut bytes = if inside { pickle.clone() } else { zip.clone() };
        for _ in 0..=next(&mut state) % 4 {
            let at = next(&mut state) % bytes.len();
            bytes[at] = u8::try_from(next(&mut state) % 256).unwrap();
        }
        if next(&mut state).is_multiple_of(8) {
            bytes.truncate(next(&mut state) % bytes.len());
        }
        try_one(if inside { with_pickle(&bytes) } else { bytes });
    }
    assert!(read > 0 && turned_away > 1_000, "{read} read, {turned_away} refused");
}
