//! Values that wait for another thread when they are dropped.

use std::ops::Deref;

use pyo3::Python;

/// A value that is dropped without the interpreter: the last handle of a log waits for the log's
/// thread, which may be waiting for the interpreter to call back.
pub struct Held<T: Send>(Option<T>);

impl<T: Send> Held<T> {
    pub fn new(value: T) -> Self {
        Self(Some(value))
    }
}

impl<T: Send> Deref for Held<T> {
    type Target = T;

    fn deref(&self) -> &T {
        match &self.0 {
            Some(value) => value,
            None => unreachable!("only drop takes the value"),
        }
    }
}

impl<T: Send> Drop for Held<T> {
    fn drop(&mut self) {
        let value = self.0.take();
        // None while the interpreter ends: then no thread gets it any more.
        Python::try_attach(|py| py.detach(move || drop(value)));
    }
}
