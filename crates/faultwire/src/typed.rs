//! Codes as types: what [`contract!`](crate::contract!) makes of a file. A failure that the
//! contract would refuse does not compile.

use std::fmt::Debug;
use std::hash::Hash;
use std::sync::Arc;

use faultwire_contract::Contract;

/// The enum of a contract's codes.
pub trait TypedCode: Copy + Debug + Eq + Hash + Send + Sync + 'static {
    /// The contract.
    fn contract() -> &'static Arc<Contract>;

    /// The code's name on the wire.
    fn id(self) -> &'static str;

    /// The code of that name.
    fn from_id(id: &str) -> Option<Self>;
}

/// One code, as a type.
pub trait Row {
    /// The enum that it belongs to.
    type Code: TypedCode;
    /// The code.
    const CODE: Self::Code;
    /// Its name on the wire.
    const ID: &'static str;
}

/// A code whose failures may name a delay.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot have a delay: its row in the contract lists no retry class with a delay",
    label = "this code is not retried after a delay"
)]
pub trait TakesDelay: Row {}

/// A code whose failures keep the data of what was done before them.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot keep data: its row in the contract does not set `keeps_data`",
    label = "this code does not keep data"
)]
pub trait KeepsData: Row {}

/// A code that is usually retried, and whose failures may say that this one is not.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has only one retry class, and a failure cannot choose another",
    label = "its row in the contract does not list `never` and other classes"
)]
pub trait MayStop: Row {}

/// A code whose failures may say that the call can be retried immediately.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has only one retry class, and a failure cannot choose another",
    label = "its row in the contract does not list `immediate` and other classes"
)]
pub trait MayRepeat: Row {}

/// A code whose failures may have this HTTP status.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot have the status {STATUS}",
    label = "its row in the contract does not list this status"
)]
pub trait HasStatus<const STATUS: u16>: Row {}
