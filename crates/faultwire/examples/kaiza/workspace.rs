//! The workspace, and what is in it. No path leads out of it, links included.

use std::fmt::Write;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Component, Path, PathBuf};

use faultwire::ResultExt;
use faultwire::kaiza::{self as errors, Code, Failure};
use sha2::{Digest, Sha256};

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

    /// The text of the file there.
    pub fn read(&self) -> Result<String, Failure> {
        fs::read_to_string(&self.absolute).fault_with(|error| match error.kind() {
            ErrorKind::NotFound => Failure::from(errors::file_not_found()),
            _ => errors::file_read_failed().cause(&error).into(),
        })
    }

    /// What is there now, if it is still what the caller has seen.
    pub fn unchanged(&self, seen: Option<&str>) -> Result<String, Failure> {
        let now = match fs::read_to_string(&self.absolute) {
            Ok(now) => now,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return match seen {
                    None => Ok(String::new()),
                    Some(_) => Err(errors::file_not_found().into()),
                };
            }
            // Writing will show what it is.
            Err(_) if seen.is_none() => return Ok(String::new()),
            Err(error) => return Err(errors::file_read_failed().cause(&error).into()),
        };
        match seen {
            None => Err(errors::file_already_exists().into()),
            Some(seen) if seen != hash(now.as_bytes()) => Err(errors::hash_mismatch().into()),
            Some(_) => Ok(now),
        }
    }

    /// All of it or nothing: a file is replaced as a whole.
    pub fn write(&self, content: &str) -> Result<(), Failure> {
        let read_only = |found: fs::Metadata| found.permissions().readonly();
        if fs::metadata(&self.absolute).is_ok_and(read_only) {
            return Err(errors::insufficient_permissions().into());
        }
        let beside = self.absolute.with_extension("kaiza-new");
        fs::write(&beside, content).fault(Code::FileWriteFailed)?;
        fs::rename(&beside, &self.absolute).map_err(|error| {
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
