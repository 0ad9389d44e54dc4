//! The built-in contracts, as modules.

use faultwire_macros::contract;

contract!(pub mod standard = builtin "standard");
contract!(pub mod kaiza = builtin "kaiza");
contract!(pub mod tuitbot = builtin "tuitbot");
contract!(pub mod workrail = builtin "workrail");
contract!(pub mod context_resolve = builtin "context-resolve");
contract!(pub mod owlclaw = builtin "owlclaw");
