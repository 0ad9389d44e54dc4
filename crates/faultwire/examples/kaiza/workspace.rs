//! The workspace, and what is in it. No path leads out of it, links included.

use std::fmt::Write as _;
use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::{Component, Path, PathBuf};

use faultwire::ResultExt;
use faultwire::kaiza::{self as errors, Code, Failure};
use sha2::{Digest, Sha256};

/// Larger files are nobody's to read as a whole.
const LARGEST: u64 = 8 << 20;

#[derive(Clone)]
pub struct Workspace {
    root: PathBuf,
}

/// A place in the workspace, whether something is there or not.
pub struct Place {
    /// From the root on.
    relative: PathBuf,
    absolute: PathBuf,
}

impl Place {
    pub fn is_under(&self, directory: &str) -> bool {
        self.relative.starts_with(directory)
    }

    pub fn relative(&self) -> &Path {
        &self.relative
    }

    /// What is there now: nothing, or a plain file.
    fn bytes(&self) -> Result<Option<Vec<u8>>, Failure> {
        let found = match fs::symlink_metadata(&self.absolute) {
            Ok(found) => found,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(errors::file_read_failed().cause(&error).into()),
        };
        // Pipes and the like would keep us waiting.
        if !found.is_file() || found.len() > LARGEST {
            let what = format!("That is no plain file of at most {LARGEST} bytes");
            return Err(errors::file_read_failed().message(what).into());
        }
        fs::read(&self.absolute).map(Some).fault(Code::FileReadFailed)
    }

    /// The text of the file there.
    pub fn read(&self) -> Result<String, Failure> {
        let bytes = self.bytes()?.ok_or_else(errors::file_not_found)?;
        String::from_utf8(bytes).fault(Code::FileReadFailed)
    }

    /// What is there now, if it is still what the caller has seen.
    pub fn unchanged(&self, seen: Option<&str>) -> Result<Vec<u8>, Failure> {
        if self.absolute.is_dir() {
            return Err(errors::file_write_failed().message("That is a directory").into());
        }
        match (self.bytes()?, seen) {
            (None, None) => Ok(Vec::new()),
            (None, Some(_)) => Err(errors::file_not_found().into()),
            (Some(_), None) => Err(errors::file_already_exists().into()),
            (Some(now), Some(seen)) if seen == hash(&now) => Ok(now),
            (Some(_), Some(_)) => Err(errors::hash_mismatch().into()),
        }
    }

    /// All of it or nothing: a file is replaced as a whole, and keeps its mode.
    pub fn write(&self, content: &str) -> Result<(), Failure> {
        let mode = fs::metadata(&self.absolute).map(|found| found.permissions()).ok();
        if mode.as_ref().is_some_and(fs::Permissions::readonly) {
            return Err(errors::insufficient_permissions().into());
        }
        // A name that nobody can have laid a link at.
        let beside = self.absolute.with_file_name(format!(".kaiza-{}", uuid::Uuid::new_v4()));
        let written = OpenOptions::new().write(true).create_new(true).open(&beside);
        let written = written
            .and_then(|mut file| file.write_all(content.as_bytes()))
            .and_then(|()| mode.map_or(Ok(()), |mode| fs::set_permissions(&beside, mode)))
            .and_then(|()| fs::rename(&beside, &self.absolute));
        written.map_err(|error| {
            // The failure is told; what is left over is not worth another.
            let _ = fs::remove_file(&beside);
            errors::file_write_failed().cause(&error).into()
        })
    }
}

impl Workspace {
    pub fn open(root: &Path) -> io::Result<Self> {
        let root = root.canonicalize()?;
        fs::read_dir(&root)?;
        Ok(Self { root })
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Where a path leads.
    pub fn place(&self, path: &str) -> Result<Place, Failure> {
        let path = Path::new(path);
        if path.as_os_str().is_empty() || path.as_os_str().as_encoded_bytes().contains(&0) {
            return Err(errors::invalid_path().message("That is no path").into());
        }
        if path.components().any(|part| part == Component::ParentDir) {
            return Err(errors::path_traversal_blocked().into());
        }
        let absolute = self.root.join(path);
        if !absolute.starts_with(&self.root) {
            return Err(errors::outside_workspace().into());
        }
        let name = absolute.file_name().filter(|_| absolute != self.root);
        let name = name.ok_or_else(|| errors::invalid_path().message("That is the workspace"))?;
        let parent = absolute.parent().unwrap_or(&self.root).canonicalize();
        let parent = parent.fault_with(|error| match error.kind() {
            ErrorKind::NotFound => Failure::from(errors::path_not_found().cause(&error)),
            _ => errors::invalid_path().cause(&error).into(),
        })?;
        let absolute = parent.join(name);
        // A link counts as what it leads to; one that leads nowhere could be led anywhere.
        let absolute = match fs::symlink_metadata(&absolute) {
            Ok(found) if found.is_symlink() => {
                absolute.canonicalize().map_err(|error| errors::invalid_path().cause(&error))?
            }
            _ => absolute,
        };
        let Ok(relative) = absolute.strip_prefix(&self.root) else {
            return Err(errors::outside_workspace().into());
        };
        Ok(Place { relative: relative.to_owned(), absolute })
    }
}

pub fn hash(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().fold(String::with_capacity(64), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
