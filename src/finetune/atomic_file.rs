//! A path and bytes in, a file that is either the old one or the whole new one out.
//!
//! Never leaves half a file under a name that somebody reads.

use std::fs::File;
use std::io::Write;
use std::path::Path;

use crate::error::{Error, Result};

/// How the names of files that are not whole yet begin.
pub const PREFIX: &str = ".mezzavoce-";

/// Writes `bytes` to `path` through a neighbour that takes its name once it is on the disk.
///
/// # Errors
/// [`Error::Io`] when the disk refuses; what was at `path` is untouched then.
pub fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let refused = |e| Error::io(path, e);
    let mut builder = tempfile::Builder::new();
    // As a new file has them, less what the umask takes away: a voice may be served by somebody else.
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    let mut file = builder.prefix(PREFIX).tempfile_in(directory).map_err(refused)?;
    file.write_all(bytes).and_then(|()| file.as_file().sync_all()).map_err(refused)?;
    file.persist(path).map_err(|e| refused(e.error))?;
    // A rename is on the disk when its directory is; where directories cannot be opened the system sees to it.
    File::open(directory)
        .and_then(|directory| directory.sync_all())
        .or_else(ignore_unsupported)
        .map_err(refused)
}

fn ignore_unsupported(error: std::io::Error) -> std::io::Result<()> {
    if cfg!(unix) { Err(error) } else { Ok(()) }
}
