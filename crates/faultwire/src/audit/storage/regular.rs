//! Opens the files of a log's directory: only regular files, never through a link, and for writing
//! only if they have one name and the right owner. New files are created exclusively.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io;
use std::path::Path;

use super::Access;

/// Why a file or a directory is not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnsafeFile {
    /// A link could lead out of the directory.
    #[error("this is a symbolic link, and links in a log's directory are not followed")]
    Link,
    /// A pipe, a device, a socket or a directory.
    #[error("this is not a regular file")]
    NotRegular,
    /// Writing to it would change another file.
    #[error("this file has {0} names (hard links), and writing to it would change the others, too")]
    Names(u64),
    /// Another user can change it at any time.
    #[error("this file belongs to user {0}, who owns neither this process nor the directory")]
    Owner(u32),
    /// A secret that others can read.
    #[error("other users can read it (mode {0:04o})")]
    Readable(u32),
    /// Other users can put files into the directory.
    #[error("other users can write to it (mode {0:04o})")]
    Writable(u32),
}

impl UnsafeFile {
    /// What to do.
    #[must_use]
    pub fn help(&self) -> &'static str {
        match self {
            Self::Link | Self::NotRegular => {
                "move it away and find out who created it: all files of a log are regular files"
            }
            Self::Names(_) => "replace it with a copy: cp FILE FILE.copy && mv FILE.copy FILE",
            Self::Owner(_) => "change its owner to the user that writes the log, or move it away",
            Self::Readable(_) => {
                "run chmod 600 on it; if someone may have read it, move the directory away to begin a new log with a new key"
            }
            Self::Writable(_) => {
                "run chmod go-w on it and look for files that do not belong there, or give the log its own directory"
            }
        }
    }
}

impl From<UnsafeFile> for io::Error {
    fn from(why: UnsafeFile) -> Self {
        Self::other(why)
    }
}

/// Why an operation failed, if the file is not safe to use.
pub(crate) fn why_unsafe(error: &io::Error) -> Option<UnsafeFile> {
    error.get_ref()?.downcast_ref::<UnsafeFile>().copied()
}

/// Opens a file to read.
pub(crate) fn read(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    open(options.read(true), path)
}

/// Opens a file to read that is for its owner alone.
pub(crate) fn read_secret(path: &Path) -> io::Result<File> {
    let file = read(path)?;
    system::expect_private(&file.metadata()?)?;
    Ok(file)
}

/// Opens a file to append to, and makes it if it is not there.
pub(crate) fn append(path: &Path, access: Access) -> io::Result<File> {
    let mut options = OpenOptions::new();
    system::restrict(&mut options, access);
    let file = open(options.append(true).create(true), path)?;
    system::expect_own(&file.metadata()?, path)?;
    Ok(file)
}

/// Opens a file to read and write without changing it, and makes it if it is not there.
pub(crate) fn update(path: &Path, create: bool) -> io::Result<File> {
    let mut options = OpenOptions::new();
    system::restrict(&mut options, Access::Owner);
    let file = open(options.read(true).write(true).create(create).truncate(false), path)?;
    system::expect_own(&file.metadata()?, path)?;
    Ok(file)
}

/// Creates a new file. An existing file of this name is removed and never written to.
pub(crate) fn create(path: &Path, access: Access) -> io::Result<File> {
    match fs::remove_file(path) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(named(path, e)),
        _ => {}
    }
    let mut options = OpenOptions::new();
    system::restrict(&mut options, access);
    open(options.append(true).create_new(true), path)
}

/// Whether only this user can change the directory.
pub(crate) fn expect_own_directory(found: &Metadata) -> io::Result<()> {
    system::expect_closed(found)
}

fn open(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    let file = system::without_links(options).open(path).map_err(|e| named(path, e))?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(UnsafeFile::NotRegular.into()) }
}

/// The system's error for a link or a pipe is hard to understand.
fn named(path: &Path, error: io::Error) -> io::Error {
    match fs::symlink_metadata(path) {
        Ok(found) if found.is_symlink() => UnsafeFile::Link.into(),
        Ok(found) if !found.is_file() => UnsafeFile::NotRegular.into(),
        _ => error,
    }
}

#[cfg(unix)]
mod system {
    use std::fs::{self, Metadata, OpenOptions};
    use std::io;
    use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
    use std::path::Path;

    use rustix::fs::OFlags;
    use rustix::process::geteuid;

    use super::{Access, UnsafeFile};

    const OTHERS_WRITE: u32 = 0o022;
    const OTHERS_READ: u32 = 0o077;

    /// A pipe is not waited for, and then found to be none of the log's files.
    pub fn without_links(options: &mut OpenOptions) -> &mut OpenOptions {
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
        options.custom_flags(flags.bits().cast_signed())
    }

    pub fn restrict(options: &mut OpenOptions, access: Access) {
        options.mode(match access {
            Access::Public => 0o644,
            Access::Owner => 0o600,
        });
    }

    pub fn expect_own(found: &Metadata, path: &Path) -> io::Result<()> {
        if found.nlink() > 1 {
            return Err(UnsafeFile::Names(found.nlink()).into());
        }
        let directory = path.parent().and_then(|dir| fs::metadata(dir).ok());
        let owns_directory = directory.is_some_and(|dir| dir.uid() == found.uid());
        if found.uid() == geteuid().as_raw() || owns_directory {
            return Ok(());
        }
        Err(UnsafeFile::Owner(found.uid()).into())
    }

    pub fn expect_private(found: &Metadata) -> io::Result<()> {
        let mode = found.mode() & 0o7777;
        if mode & OTHERS_READ == 0 { Ok(()) } else { Err(UnsafeFile::Readable(mode).into()) }
    }

    pub fn expect_closed(found: &Metadata) -> io::Result<()> {
        let mode = found.mode() & 0o7777;
        if mode & OTHERS_WRITE == 0 { Ok(()) } else { Err(UnsafeFile::Writable(mode).into()) }
    }
}

/// On other systems, access lists apply, and only files that are not regular are refused.
#[cfg(not(unix))]
mod system {
    use std::fs::{Metadata, OpenOptions};
    use std::io;
    use std::path::Path;

    use super::Access;

    pub fn without_links(options: &mut OpenOptions) -> &mut OpenOptions {
        options
    }

    pub fn restrict(_: &mut OpenOptions, _: Access) {}

    pub fn expect_own(_: &Metadata, _: &Path) -> io::Result<()> {
        Ok(())
    }

    pub fn expect_private(_: &Metadata) -> io::Result<()> {
        Ok(())
    }

    pub fn expect_closed(_: &Metadata) -> io::Result<()> {
        Ok(())
    }
}
