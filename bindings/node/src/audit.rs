//! The audit log. Nothing here waits on the event loop's thread.

use faultwire::audit::Log;
use faultwire::json;
use napi::bindgen_prelude::{Env, Object};
use napi_derive::napi;

use crate::error::{run, thrown};
use crate::fault::NativeFault;

/// An open audit log.
#[napi]
pub struct NativeAuditLog(pub(crate) Log);

#[napi]
impl NativeAuditLog {
    /// Opens the log in a directory.
    #[napi(factory)]
    pub fn open(directory: String, options: String) -> napi::Result<Self> {
        run(|| json::open_log(&directory, &options).map(Self))
    }

    /// Records a fault. The promise has the record's number, when it is on disk.
    #[napi(ts_return_type = "Promise<number | null>")]
    pub fn append<'env>(
        &self,
        env: &'env Env,
        fault: &NativeFault,
        call: String,
    ) -> napi::Result<Object<'env>> {
        let entry = run(|| json::entry(&self.0, &fault.0, &call))?;
        self.submit(env, entry)
    }

    /// Records something that is no failure.
    #[napi(ts_return_type = "Promise<number | null>")]
    pub fn event<'env>(
        &self,
        env: &'env Env,
        name: String,
        facts: String,
    ) -> napi::Result<Object<'env>> {
        let entry = run(|| json::event(&name, &facts))?;
        self.submit(env, entry)
    }

    fn submit<'env>(
        &self,
        env: &'env Env,
        entry: faultwire::audit::Entry,
    ) -> napi::Result<Object<'env>> {
        let (deferred, promise) = env.create_deferred()?;
        self.0.submit(entry).then(move |receipt| match receipt {
            Ok(receipt) => deferred.resolve(move |_| Ok(receipt.seq.map(|seq| seq as f64))),
            Err(why) => deferred.reject(thrown(why.into())),
        });
        Ok(promise)
    }

    /// The record's members for a fault, without its place in the log.
    #[napi]
    pub fn entry(&self, fault: &NativeFault, call: String) -> napi::Result<String> {
        run(|| Ok(json::entry(&self.0, &fault.0, &call)?.as_str().to_owned()))
    }

    /// The log's id.
    #[napi(getter)]
    pub fn id(&self) -> String {
        self.0.id().to_owned()
    }

    /// Waits for everything, and lets go of the files.
    #[napi]
    pub fn close(&self) -> napi::Result<()> {
        run(|| self.0.close().map_err(Into::into))
    }
}
