//! Places in a workspace. No path leads out of it, links included.

use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::{Component, Path, PathBuf};

use faultwire::ResultExt;
use faultwire::kaiza::{self as errors, Code, Failure};
use sha2::{Digest, Sha256};

/// Larger files are not read as a whole.
const LARGEST: u64 = 8 << 20;

/// A place in the workspace, whether something is there or not.
pub struct Place {
    /// From the root on.
    pub relative: PathBuf,
    absolute: PathBuf,
}

impl Place {
    pub fn find(root: &Path, path: &str) -> Result<Self, Failure> {
        if Path::new(path).components().any(|part| part == Component::ParentDir) {
            return Err(errors::path_traversal_blocked().into());
        }
        let named: PathBuf = root.join(path).components().collect();
        if !named.starts_with(root) {
            return Err(errors::outside_workspace().into());
        }
        let Some(name) = named.file_name().filter(|_| named != root) else {
            return Err(errors::invalid_path().message("That is the workspace itself").into());
        };
        let absolute = match fs::symlink_metadata(&named) {
            // A link counts as its target; a dangling link could be pointed anywhere.
            Ok(_) => named.canonicalize().fault(Code::InvalidPath)?,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let parent = named.parent().unwrap_or(root).canonicalize();
                parent.fault(Code::PathNotFound)?.join(name)
            }
            Err(error) => return Err(errors::invalid_path().cause(&error).into()),
        };
        let relative = absolute.strip_prefix(root).map_err(|_| errors::outside_workspace())?;
        Ok(Self { relative: relative.to_owned(), absolute })
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

    /// Nothing or a regular file: a pipe could block, and a link was created meanwhile.
    fn bytes(&self) -> Result<Option<Vec<u8>>, Failure> {
        let found = match fs::symlink_metadata(&self.absolute) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            found => found.fault(Code::FileReadFailed)?,
        };
        if !found.is_file() || found.len() > LARGEST {
            let what = format!("That is no plain file of at most {LARGEST} bytes");
            return Err(errors::file_read_failed().message(what).into());
        }
        fs::read(&self.absolute).map(Some).fault(Code::FileReadFailed)
    }

    /// Replaces a file atomically; it keeps its mode.
    pub fn write(&self, content: &str) -> Result<(), Failure> {
        let mode = fs::metadata(&self.absolute).map(|found| found.permissions()).ok();
        if mode.as_ref().is_some_and(fs::Permissions::readonly) {
            return Err(errors::insufficient_permissions().into());
        }
        // A random name, at which no link can exist.
        let beside = self.absolute.with_file_name(format!(".kaiza-{}", uuid::Uuid::new_v4()));
        let file = OpenOptions::new().write(true).create_new(true).open(&beside);
        let written = file
            .and_then(|mut file| file.write_all(content.as_bytes()))
            .and_then(|()| mode.map_or(Ok(()), |mode| fs::set_permissions(&beside, mode)))
            .and_then(|()| fs::rename(&beside, &self.absolute));
        written.map_err(|error| {
            let _ = fs::remove_file(&beside); // What is left over is not worth another failure.
            errors::file_write_failed().cause(&error).into()
        })
    }
}

pub fn hash(bytes: &[u8]) -> String {
    data_encoding::HEXLOWER.encode(&Sha256::digest(bytes))
}
