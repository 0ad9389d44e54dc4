//! What happens to a message. This is the whole order, and the only place that has one.
//!
//! | from the client (`inbound`) | from the server (`outbound`) |
//! |---|---|
//! | no message, or one that two parsers could read differently: refused | no message: joined with what follows, or the call that it was for fails |
//! | answer to the server: passed | request or notification: passed |
//! | notification: noted, passed | reply to nothing: dropped, recorded |
//! | request: may the client use it? id free? server there? room? | reply: its call is taken out, which ends it |
//! | … arguments fit the schema? | … a success: its own bytes pass |
//! | … the call is open, its own bytes pass | … a failure: through the door |

mod failure;
mod inbound;
mod ours;
mod outbound;
mod refusal;
mod stray;

pub(crate) use inbound::Place;
pub(crate) use stray::{NO_ROOM, TooLong, says_jsonrpc};
