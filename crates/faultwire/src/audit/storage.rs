//! What the log asks of a disk. [`Disk`] is the real one; a test may bring one that fails.

mod regular;

use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::audit::segment;

pub use regular::UnsafeFile;
pub(crate) use regular::why_unsafe;
#[cfg(feature = "index")]
pub(crate) use regular::{read as open_regular, update as open_to_update};

/// One directory. Names are those of files directly in it.
pub trait Storage: Send + Sync + 'static {
    /// Makes the directory if it is not there.
    fn prepare(&self) -> io::Result<()>;
    /// Locks the log for writing, and writes the holder's name into the lock file.
    fn lock(&self, holder: &str) -> Result<Box<dyn Send + Sync>, LockError>;
    /// Who holds the lock, if it is locked.
    fn holder(&self) -> Option<String>;
    /// The names of the files.
    fn names(&self) -> io::Result<Vec<String>>;
    /// Reads a file from its beginning.
    fn read(&self, name: &str) -> io::Result<Box<dyn Read + Send>> {
        self.read_from(name, 0)
    }
    /// Reads a file from this place on.
    fn read_from(&self, name: &str, offset: u64) -> io::Result<Box<dyn Read + Send>>;
    /// Reads a file that must be for its owner alone.
    fn read_secret(&self, name: &str) -> io::Result<Box<dyn Read + Send>> {
        self.read(name)
    }
    /// Opens a file to write at its end, and makes it if it is not there.
    fn append(&self, name: &str, access: Access) -> io::Result<Box<dyn Tail>>;
    /// Creates a new file for writing, replacing any file of this name.
    fn create(&self, name: &str, access: Access) -> io::Result<Box<dyn Tail>>;
    /// Writes these bytes into the midst of a file.
    fn overwrite(&self, name: &str, offset: u64, bytes: &[u8]) -> io::Result<()>;
    /// Gives a file another name.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;
    /// Returns once the names are on disk.
    fn sync_names(&self) -> io::Result<()>;
    /// The directory, for messages.
    fn place(&self) -> &Path;
}

/// A file that is written at its end.
pub trait Tail: Send {
    /// Writes all of it.
    fn write(&mut self, bytes: &[u8]) -> io::Result<()>;
    /// Returns once everything written is on disk.
    fn sync(&mut self) -> io::Result<()>;
    /// Removes the bytes after `len`.
    fn cut(&mut self, len: u64) -> io::Result<()>;
    /// Whether the file can still be found under its name, and has this length.
    fn is_in_place(&self, len: u64) -> io::Result<bool>;
}

/// Who may read a new file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// All users who can read the directory.
    Public,
    /// The owner alone.
    Owner,
}

/// Why the lock could not be taken.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another process writes this log.
    #[error("in use by {0}")]
    Held(String),
    /// The lock file cannot be used.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// A directory of the file system.
#[derive(Clone, Debug)]
pub struct Disk {
    dir: PathBuf,
}

impl Disk {
    /// The directory at this path, which need not be there yet.
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        Self { dir: dir.into() }
    }
}

impl Storage for Disk {
    fn prepare(&self) -> io::Result<()> {
        match fs::metadata(&self.dir) {
            Ok(found) if found.is_dir() => return regular::expect_own_directory(&found),
            Ok(_) => return Err(io::Error::other("a file of this name already exists")),
            Err(_) => {}
        }
        let missing: Vec<&Path> = self.dir.ancestors().take_while(|p| !p.exists()).collect();
        create_private(&self.dir)?;
        // A directory lasts once its name is on disk in the one above.
        missing.iter().try_for_each(|made| sync_directory(parent(made)))
    }

    fn lock(&self, holder: &str) -> Result<Box<dyn Send + Sync>, LockError> {
        let path = self.dir.join(segment::LOCK);
        let file = regular::update(&path, true)?;
        take(&file, &path)?;
        // A lock on a file that was unlinked meanwhile protects nothing.
        if identity(&fs::symlink_metadata(&path)?) != identity(&file.metadata()?) {
            return Err(io::Error::other("the lock file was replaced").into());
        }
        file.set_len(0)?;
        (&file).write_all(format!("{holder}\n").as_bytes())?;
        Ok(Box::new(file))
    }

    fn holder(&self) -> Option<String> {
        let path = self.dir.join(segment::LOCK);
        let file = regular::read(&path).ok()?;
        match file.try_lock_shared() {
            Err(TryLockError::WouldBlock) => Some(holder(&path)),
            Ok(()) | Err(TryLockError::Error(_)) => None,
        }
    }

    fn names(&self) -> io::Result<Vec<String>> {
        let entries = fs::read_dir(&self.dir)?;
        let name = |e: io::Result<fs::DirEntry>| e.map(|e| e.file_name().into_string().ok());
        entries.filter_map(|e| name(e).transpose()).collect()
    }

    fn read_from(&self, name: &str, offset: u64) -> io::Result<Box<dyn Read + Send>> {
        let mut file = regular::read(&self.dir.join(name))?;
        file.seek(SeekFrom::Start(offset))?;
        Ok(Box::new(file))
    }

    fn read_secret(&self, name: &str) -> io::Result<Box<dyn Read + Send>> {
        Ok(Box::new(regular::read_secret(&self.dir.join(name))?))
    }

    fn append(&self, name: &str, access: Access) -> io::Result<Box<dyn Tail>> {
        let path = self.dir.join(name);
        DiskTail::boxed(regular::append(&path, access)?, path)
    }

    fn create(&self, name: &str, access: Access) -> io::Result<Box<dyn Tail>> {
        let path = self.dir.join(name);
        DiskTail::boxed(regular::create(&path, access)?, path)
    }

    fn overwrite(&self, name: &str, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let mut file = regular::update(&self.dir.join(name), false)?;
        file.seek(SeekFrom::Start(offset))?;
        file.write_all(bytes)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.dir.join(from), self.dir.join(to))
    }

    fn sync_names(&self) -> io::Result<()> {
        sync_directory(&self.dir)
    }

    fn place(&self) -> &Path {
        &self.dir
    }
}

struct DiskTail {
    file: File,
    path: PathBuf,
    identity: Identity,
}

impl DiskTail {
    fn boxed(file: File, path: PathBuf) -> io::Result<Box<dyn Tail>> {
        let identity = identity(&file.metadata()?);
        Ok(Box::new(Self { file, path, identity }))
    }
}

impl Tail for DiskTail {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn cut(&mut self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }

    fn is_in_place(&self, len: u64) -> io::Result<bool> {
        match fs::symlink_metadata(&self.path) {
            Ok(found) => Ok(identity(&found) == self.identity && found.len() == len),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(e) => Err(e),
        }
    }
}

/// Locks the file. A reader that checks for a writer locks it for a moment, too, so it is tried
/// more than once.
fn take(file: &File, path: &Path) -> Result<(), LockError> {
    for attempt in 1.. {
        match file.try_lock() {
            Ok(()) => break,
            Err(TryLockError::WouldBlock) if attempt < 5 => {
                std::thread::sleep(Duration::from_millis(10));
            }
            Err(TryLockError::WouldBlock) => return Err(LockError::Held(holder(path))),
            Err(TryLockError::Error(e)) => return Err(e.into()),
        }
    }
    Ok(())
}

/// What the lock file says of its holder.
fn holder(lock: &Path) -> String {
    const LONGEST: u64 = 1024;
    let mut holder = String::new();
    // A holder that cannot be read is still one.
    let _ = regular::read(lock).and_then(|file| file.take(LONGEST).read_to_string(&mut holder));
    let holder = holder.trim();
    if holder.is_empty() { "another process".to_owned() } else { holder.to_owned() }
}

fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

#[cfg(unix)]
fn sync_directory(dir: &Path) -> io::Result<()> {
    File::open(dir)?.sync_all()
}

/// A log has more than its clients may see, so only its owner can read a new directory.
#[cfg(unix)]
fn create_private(dir: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)
}

#[cfg(not(unix))]
fn create_private(dir: &Path) -> io::Result<()> {
    fs::create_dir_all(dir)
}

/// What identifies a file independently of its name: its device and inode.
type Identity = (u64, u64);

#[cfg(unix)]
fn identity(found: &fs::Metadata) -> Identity {
    use std::os::unix::fs::MetadataExt;
    (found.dev(), found.ino())
}

/// On other systems a directory cannot be opened; the system makes its names durable.
#[cfg(not(unix))]
fn sync_directory(_: &Path) -> io::Result<()> {
    Ok(())
}

#[cfg(not(unix))]
fn identity(_: &fs::Metadata) -> Identity {
    (0, 0)
}
