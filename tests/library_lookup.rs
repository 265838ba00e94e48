//! The search for the ONNX Runtime library, with archives and package clients made here: no network.
#![cfg(unix)]

use std::env::consts::{ARCH, OS};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use flate2::{Compression, write::GzEncoder};
use mezzavoce::error::{Error, Result};
use mezzavoce::runtime::library::{Client, Clients, Lock, Lookup, Pin, default_cache_dir, locate, locate_in};
use sha2::{Digest, Sha256};
use tempfile::TempDir;

const WHEEL_LIBRARY: &[u8] = b"the library that lies in the wheel";
const NPM_LIBRARY: &[u8] = b"the library that lies in the npm package";
const WHEEL_MEMBER: &str = "onnxruntime/capi/libonnxruntime.so.1.32.0";
const NPM_MEMBER: &str = "package/bin/libonnxruntime.so.1";

/// A cache, two pinned archives and no client that works.
struct Scene {
    dir: TempDir,
    lock: Lock,
    lookup: Lookup,
}

impl Scene {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut zip = zip::ZipWriter::new(File::create(dir.path().join("a.whl")).unwrap());
        for (name, bytes) in [("onnxruntime/other.txt", &b"other"[..]), (WHEEL_MEMBER, WHEEL_LIBRARY)] {
            zip.start_file(name, zip::write::SimpleFileOptions::default()).unwrap();
            zip.write_all(bytes).unwrap();
        }
        zip.finish().unwrap();
        let tgz = GzEncoder::new(File::create(dir.path().join("a.tgz")).unwrap(), Compression::fast());
        let mut tar = tar::Builder::new(tgz);
        for (name, bytes) in [("package/other.txt", &b"other"[..]), (NPM_MEMBER, NPM_LIBRARY)] {
            let mut header = tar::Header::new_gnu();
            header.set_size(bytes.len().try_into().unwrap());
            header.set_mode(0o644);
            tar.append_data(&mut header, name, bytes).unwrap();
        }
        tar.into_inner().unwrap().finish().unwrap();

        let pip = Client::Pip {
            python: "3.11".to_owned(),
            implementation: "cp".to_owned(),
            abi: "cp311".to_owned(),
            platform: "some_platform".to_owned(),
        };
        let pins = vec![
            pin(dir.path(), "a.whl", pip, "onnxruntime", "1.32.0", WHEEL_MEMBER, WHEEL_LIBRARY),
            pin(dir.path(), "a.tgz", Client::Npm, "onnxruntime-node", "1.30.0", NPM_MEMBER, NPM_LIBRARY),
        ];
        let absent = vec![dir.path().join("no-such-client").into_os_string()];
        let lookup = Lookup {
            explicit: None,
            cache_dir: dir.path().join("cache"),
            offline: false,
            clients: Clients { pythons: vec![absent.clone()], npm: absent, timeout: Duration::from_secs(60) },
        };
        Self { dir, lock: Lock { pins }, lookup }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// A client that notes its arguments, then does what `body` says with `$SCENE` as our directory. Run
    /// as `sh FILE`, so that no other test's fork can hold it open for writing while it is executed.
    fn client(&self, name: &str, body: &str) -> Vec<OsString> {
        let file = self.path(name);
        let scene = self.dir.path().display();
        let text = format!("SCENE='{scene}'\necho \"$@\" >> \"$SCENE/{name}.calls\"\n{body}\n");
        fs::write(&file, text).unwrap();
        vec!["sh".into(), file.into()]
    }

    fn working_python(&mut self) {
        self.lookup.clients.pythons = vec![self.client("python", "cp \"$SCENE/a.whl\" .")];
    }

    fn working_npm(&mut self) {
        self.lookup.clients.npm = self.client("npm", "cp \"$SCENE/a.tgz\" .");
    }

    fn calls(&self, client: &str) -> Vec<String> {
        let text = fs::read_to_string(self.path(&format!("{client}.calls"))).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    fn locate(&self) -> Result<PathBuf> {
        locate_in(&self.lookup, &self.lock)
    }

    fn cached(&self, pin: usize) -> PathBuf {
        self.lock.pins[pin].cache_path(&self.lookup.cache_dir)
    }

    fn put_in_cache(&self, bytes: &[u8]) {
        fs::create_dir_all(self.cached(0).parent().unwrap()).unwrap();
        fs::write(self.cached(0), bytes).unwrap();
    }

    /// Fails unless the search fails with all of `parts` in its message and leaves no file in the cache.
    fn refuses(&self, parts: &[&str]) {
        let message = match self.locate() {
            Err(Error::Runtime(message)) => message,
            other => panic!("expected Error::Runtime with {parts:?}, got {other:?}"),
        };
        for part in parts {
            assert!(message.contains(part), "no {part:?} in: {message}");
        }
        assert_eq!(files_under(&self.lookup.cache_dir), Vec::<PathBuf>::new(), "left in the cache");
    }
}

fn pin(
    dir: &Path,
    archive: &str,
    client: Client,
    package: &str,
    version: &str,
    member: &str,
    library: &[u8],
) -> Pin {
    let bytes = fs::read(dir.join(archive)).unwrap();
    Pin {
        os: OS.to_owned(),
        arch: ARCH.to_owned(),
        version: version.to_owned(),
        client,
        package: package.to_owned(),
        archive: archive.to_owned(),
        archive_bytes: bytes.len().try_into().unwrap(),
        archive_sha256: sha256(&bytes),
        member: member.to_owned(),
        library_bytes: library.len().try_into().unwrap(),
        library_sha256: sha256(library),
    }
}

fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn files_under(dir: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(dir) else { return Vec::new() };
    entries
        .map(|entry| entry.unwrap().path())
        .flat_map(|path| if path.is_dir() { files_under(&path) } else { vec![path] })
        .collect()
}

#[test]
fn an_explicit_file_wins_over_a_cached_one() {
    let mut scene = Scene::new();
    scene.put_in_cache(WHEEL_LIBRARY);
    let own = scene.path("my-runtime.so");
    fs::write(&own, "own").unwrap();
    scene.lookup.explicit = Some(own.clone());
    assert_eq!(scene.locate().unwrap(), own);
}

#[test]
fn an_explicit_directory_gives_the_library_within() {
    let mut scene = Scene::new();
    let (wanted, others) = match OS {
        "macos" => ("libonnxruntime.1.32.0.dylib", ["libonnxruntime_providers_shared.dylib", "readme"]),
        _ => ("libonnxruntime.so.1.32.0", ["libonnxruntime_providers_shared.so", "libonnxruntime.so.1.30.0"]),
    };
    let capi = scene.path("capi");
    fs::create_dir(&capi).unwrap();
    for name in others.into_iter().chain([wanted]) {
        fs::write(capi.join(name), "x").unwrap();
    }
    scene.lookup.explicit = Some(capi.clone());
    assert_eq!(scene.locate().unwrap(), capi.join(wanted));
}

#[test]
fn an_explicit_path_without_a_library_is_named_and_not_replaced() {
    let mut scene = Scene::new();
    scene.working_python();
    fs::create_dir(scene.path("empty")).unwrap();
    for name in ["missing/libonnxruntime.so", "empty"] {
        let path = scene.path(name);
        scene.lookup.explicit = Some(path.clone());
        scene.refuses(&["--onnxruntime", "ORT_DYLIB_PATH", &path.display().to_string()]);
    }
    assert!(scene.calls("python").is_empty());
}

#[test]
fn a_library_copied_into_the_cache_is_verified_and_needs_no_client() {
    let mut scene = Scene::new();
    scene.lookup.offline = true;
    scene.put_in_cache(WHEEL_LIBRARY);
    for _ in 0..2 {
        assert_eq!(scene.locate().unwrap(), scene.cached(0));
    }
}

#[test]
fn pip_is_asked_once_for_the_pinned_wheel() {
    let mut scene = Scene::new();
    scene.working_python();
    scene.working_npm();
    for _ in 0..3 {
        assert_eq!(scene.locate().unwrap(), scene.cached(0));
    }
    assert_eq!(fs::read(scene.cached(0)).unwrap(), WHEEL_LIBRARY);
    let calls = scene.calls("python");
    assert_eq!(calls.len(), 1, "{calls:?}");
    assert!(calls[0].starts_with("-m pip download "), "{calls:?}");
    for words in ["--no-deps", "--only-binary=:all:", "--python-version 3.11", "--platform some_platform"] {
        assert!(calls[0].contains(words), "{calls:?}");
    }
    assert!(calls[0].ends_with(" onnxruntime==1.32.0"), "{calls:?}");
    assert!(scene.calls("npm").is_empty());
}

#[test]
fn npm_is_the_second_way() {
    let mut scene = Scene::new();
    scene.working_npm();
    for _ in 0..2 {
        assert_eq!(scene.locate().unwrap(), scene.cached(1));
    }
    assert_eq!(fs::read(scene.cached(1)).unwrap(), NPM_LIBRARY);
    let calls = scene.calls("npm");
    assert_eq!(calls.len(), 1, "{calls:?}");
    assert!(calls[0].starts_with("pack ") && calls[0].ends_with(" onnxruntime-node@1.30.0"), "{calls:?}");
}

#[test]
fn a_python_without_pip_gives_way_to_the_next() {
    let mut scene = Scene::new();
    scene.working_python();
    let bare = scene.client("bare", "echo 'No module named pip' >&2; exit 1");
    scene.lookup.clients.pythons.insert(0, bare);
    assert_eq!(scene.locate().unwrap(), scene.cached(0));
    assert_eq!(scene.calls("bare").len(), 1);
}

#[test]
fn what_a_client_brings_is_refused_unless_it_is_the_pinned_file() {
    let check = |python: &str, parts: &[&str]| {
        let mut scene = Scene::new();
        scene.lookup.clients.pythons = vec![scene.client("python", python)];
        scene.refuses(parts);
    };
    let tampered = "cp \"$SCENE/a.whl\" . && printf x >> a.whl";
    check(tampered, &["pip (sh ", "refused a.whl: its sha256 is ", "npm (", "no such program"]);
    check("cp \"$SCENE/a.whl\" other.whl", &["left no readable a.whl"]);
    check("head -c 100 \"$SCENE/a.whl\" > a.whl", &["refused a.whl"]);
    check(
        "seq 9; echo no such release >&2; exit 3",
        &["exit status: 3", "it said: 7 | 8 | 9 | no such release"],
    );
    check("exit 4", &["exit status: 4", "it said nothing"]);
}

#[test]
fn a_right_archive_with_a_wrong_library_is_refused() {
    let check = |spoil: fn(&mut Pin), parts: &[&str]| {
        for way in [0, 1] {
            let mut scene = Scene::new();
            if way == 0 {
                scene.working_python()
            } else {
                scene.working_npm()
            }
            spoil(&mut scene.lock.pins[way]);
            scene.refuses(parts);
        }
    };
    check(|pin| pin.library_sha256 = sha256(b"something else"), &["its sha256 is", "pinned is"]);
    check(|pin| pin.member = "not/there.so".to_owned(), &["refused `not/there.so` of a."]);
    check(|pin| pin.library_bytes -= 2, &["its sha256 is"]);
}

#[test]
fn a_client_that_hangs_is_killed() {
    let mut scene = Scene::new();
    scene.lookup.clients.pythons = vec![scene.client("python", "echo still here; exec sleep 60")];
    scene.lookup.clients.timeout = Duration::from_secs(2);
    let started = std::time::Instant::now();
    scene.refuses(&["killed after 2 s; it said: still here"]);
    assert!(started.elapsed() < Duration::from_secs(30));
}

#[test]
fn offline_starts_no_client_and_lists_every_way_out() {
    let mut scene = Scene::new();
    scene.working_python();
    scene.working_npm();
    scene.lookup.offline = true;
    let (wheel, npm) = (scene.cached(0).display().to_string(), scene.cached(1).display().to_string());
    scene.refuses(&[
        "offline",
        "--onnxruntime or ORT_DYLIB_PATH",
        "`pip install onnxruntime==1.32.0`",
        &format!("SITE-PACKAGES/{WHEEL_MEMBER}"),
        &format!("cache: {wheel} is not there"),
        &format!("copy `{WHEEL_MEMBER}` out of a.whl"),
        &format!("to {wheel}"),
        &format!("to {npm}"),
    ]);
    assert!(scene.calls("python").is_empty() && scene.calls("npm").is_empty());
}

#[test]
fn a_platform_without_a_pin_is_named() {
    let mut scene = Scene::new();
    scene.working_python();
    for pin in &mut scene.lock.pins {
        pin.arch = "pdp11".to_owned();
    }
    scene.refuses(&[&format!("none is pinned for {OS} {ARCH}"), "--onnxruntime or ORT_DYLIB_PATH"]);
    assert!(scene.calls("python").is_empty());
}

#[test]
fn a_damaged_cached_library_is_fetched_again() {
    let mut altered = WHEEL_LIBRARY.to_vec();
    altered[5] ^= 1;
    for damaged in [&b""[..], &WHEEL_LIBRARY[..9], &altered] {
        let mut scene = Scene::new();
        scene.put_in_cache(damaged);
        scene.working_python();
        assert_eq!(scene.locate().unwrap(), scene.cached(0));
        assert_eq!(fs::read(scene.cached(0)).unwrap(), WHEEL_LIBRARY);

        // And once more after it was verified and noted: same size, another modification time.
        fs::write(scene.cached(0), damaged).unwrap();
        let touched = SystemTime::now() + Duration::from_secs(5);
        File::options().append(true).open(scene.cached(0)).unwrap().set_modified(touched).unwrap();
        scene.locate().unwrap();
        assert_eq!(fs::read(scene.cached(0)).unwrap(), WHEEL_LIBRARY);
        assert_eq!(scene.calls("python").len(), 2);
    }
}

#[test]
fn a_damaged_cached_library_is_described_when_it_cannot_be_replaced() {
    let mut scene = Scene::new();
    scene.put_in_cache(&WHEEL_LIBRARY[..9]);
    scene.lookup.offline = true;
    let message = scene.locate().unwrap_err().to_string();
    let fact = format!("has 9 bytes instead of {}", WHEEL_LIBRARY.len());
    assert!(message.contains(&fact), "{message}");
}

#[test]
fn two_that_fetch_at_once_both_succeed() {
    let mut scene = Scene::new();
    // Neither client goes on before the other has started, so the two fetches do overlap.
    let body = "touch \"$SCENE/started.$$\"\n\
                until [ $(ls \"$SCENE\" | grep -c '^started') -ge 2 ]; do sleep 0.02; done\n\
                cp \"$SCENE/a.whl\" .";
    scene.lookup.clients.pythons = vec![scene.client("python", body)];
    std::thread::scope(|scope| {
        let fetches = [scope.spawn(|| scene.locate()), scope.spawn(|| scene.locate())];
        for fetch in fetches {
            assert_eq!(fetch.join().unwrap().unwrap(), scene.cached(0));
        }
    });
    assert_eq!(scene.calls("python").len(), 2);
    assert_eq!(fs::read(scene.cached(0)).unwrap(), WHEEL_LIBRARY);
    let left = fs::read_dir(&scene.lookup.cache_dir).unwrap().count();
    assert_eq!(left, 1, "working directories remain: {:?}", files_under(&scene.lookup.cache_dir));
}

#[test]
fn what_a_killed_fetch_left_does_no_harm_and_is_removed_in_time() {
    let mut scene = Scene::new();
    let left = |name: &str| {
        let dir = scene.lookup.cache_dir.join(name);
        fs::create_dir_all(&dir).unwrap();
        fs::write(dir.join("library"), &WHEEL_LIBRARY[..9]).unwrap();
        dir
    };
    let (recent, old) = (left(".fetch-recent"), left(".fetch-old"));
    let long_ago = SystemTime::now() - Duration::from_secs(2 * 3600);
    File::open(&old).unwrap().set_modified(long_ago).unwrap();
    scene.working_python();
    assert_eq!(fs::read(scene.locate().unwrap()).unwrap(), WHEEL_LIBRARY);
    assert!(recent.exists(), "it may be another process's, still at work");
    assert!(!old.exists());
}

#[test]
fn a_cache_that_cannot_be_written_is_named() {
    let mut scene = Scene::new();
    scene.working_python();
    fs::write(scene.path("file"), "").unwrap();
    scene.lookup.cache_dir = scene.path("file").join("cache");
    match scene.locate() {
        Err(Error::Io { path, source }) => {
            assert_eq!(path, scene.lookup.cache_dir);
            assert!(source.to_string().contains("--onnxruntime"), "{source}");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_embedded_lock_pins_every_supported_platform() {
    let lock = Lock::embedded().unwrap();
    for (os, arch) in [("linux", "x86_64"), ("linux", "aarch64"), ("macos", "aarch64"), ("windows", "x86_64")]
    {
        let first = lock.pins.iter().find(|pin| pin.os == os && pin.arch == arch).unwrap();
        assert!(matches!(first.client, Client::Pip { .. }), "{os} {arch}");
        assert_eq!(first.version, "1.32.0", "{os} {arch}");
    }
    for pin in &lock.pins {
        for sha256 in [&pin.archive_sha256, &pin.library_sha256] {
            assert!(
                sha256.len() == 64 && sha256.bytes().all(|b| b"0123456789abcdef".contains(&b)),
                "{pin:?}"
            );
        }
        assert!(pin.archive.contains(&pin.version), "{pin:?}");
    }
    let path = lock.pins[0].cache_path(Path::new("/cache"));
    assert_eq!(path, Path::new("/cache/onnxruntime-1.32.0/6c1585d1bbf45b07/libonnxruntime.so.1.32.0"));
}

#[test]
fn the_embedded_lock_is_what_locate_uses() {
    let mut scene = Scene::new();
    scene.lookup.offline = true;
    let pins = Lock::embedded().unwrap().pins;
    let Some(pin) = pins.iter().find(|pin| pin.os == OS && pin.arch == ARCH) else {
        println!("skipped: no pin for {OS} {ARCH}");
        return;
    };
    let message = locate(&scene.lookup).unwrap_err().to_string();
    assert!(message.contains(&pin.archive_sha256), "{message}");
}

#[cfg(not(target_os = "macos"))]
#[test]
fn the_cache_lies_where_the_user_keeps_caches() {
    let check = |xdg: Option<&str>, home: Option<&str>, expected: Option<&str>| {
        let found = default_cache_dir(|name| match name {
            "XDG_CACHE_HOME" => xdg.map(OsString::from),
            "HOME" => home.map(OsString::from),
            _ => None,
        });
        assert_eq!(found.ok(), expected.map(PathBuf::from), "XDG {xdg:?}, HOME {home:?}");
    };
    check(Some("/x"), Some("/home/a"), Some("/x/mezzavoce"));
    check(None, Some("/home/a"), Some("/home/a/.cache/mezzavoce"));
    check(Some(""), Some("/home/a"), Some("/home/a/.cache/mezzavoce"));
    check(Some("relative"), Some("/home/a"), Some("/home/a/.cache/mezzavoce"));
    check(Some("relative"), None, None);
    check(None, None, None);
}
