//! `serve`: the gateway is not built yet, and says so.

use crate::problem::Problem;
use crate::{Done, edge};

pub fn run() -> Result<Done, Problem> {
    edge::show(
        "faultwire serve comes with the HTTP gateway, which this version does not have yet.\n\
         What works now: faultwire contract list, faultwire explain CODE, faultwire --help\n",
    )?;
    Ok(Done::Fine)
}
