//! `classify`: replies of a server in, one answer per line out.

use faultwire::json::{self, Request};

use crate::args::ClassifyArgs;
use crate::edge::Line;
use crate::problem::Problem;
use crate::{Done, edge, resolve};

pub fn run(args: &ClassifyArgs) -> Result<Done, Problem> {
    let contract = resolve::contract(&args.contract.contract)?;
    let request = args.call.as_deref().map(request).transpose()?.unwrap_or_default();
    edge::lines(args.max_line, |number, line| {
        let line = match &line {
            Line::Whole(line) => Some(&line[..]),
            Line::TooLong => None,
        };
        let answer = json::classify(&contract, line, args.max_line, &request, args.why);
        let mut answer = answer.map_err(|e| {
            Problem::bad(&format!("stdin, line {number}"), e.what(), "please report this as a bug")
        })?;
        answer.push(b'\n');
        edge::print(&answer)
    })?;
    Ok(Done::Fine)
}

/// The request in the JSON, or in the file that contains it.
fn request(given: &str) -> Result<Request, Problem> {
    let (place, text) = if given.trim_start().starts_with('{') {
        ("--call".to_owned(), given.to_owned())
    } else {
        (given.to_owned(), edge::file(given.as_ref())?)
    };
    Ok(Request::read(&text).map_err(|e| e.at(place))?)
}
