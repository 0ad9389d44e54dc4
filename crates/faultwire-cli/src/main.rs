//! The command line of Faultwire.

mod args;
mod chosen;
mod clients;
mod command;
mod config;
mod demo;
mod demo_server;
mod edge;
mod problem;
mod progress;
mod secrets;
mod server_name;
mod snippet;
mod style;
mod terminal;
mod treatment;

use std::process::ExitCode;

use clap::Parser;

use args::{Args, Command, ContractCommand};
use problem::Problem;

/// What one thread makes another one gives back all the time here, which the system's allocator
/// is slow at.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// How a command ended that did not fail.
pub(crate) enum Done {
    /// Nothing to complain about.
    Fine,
    /// It found what it looks for: exit code 1.
    Findings,
}

fn main() -> ExitCode {
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(e) => return usage(&e),
    };
    if matches!(args.command, Command::DemoServer) {
        return demo_server::serve();
    }
    let (json, contract) = (args.json, args.command.contract().map(str::to_owned));
    match run(args) {
        Ok(Done::Fine) => ExitCode::SUCCESS,
        Ok(Done::Findings) => ExitCode::from(1),
        Err(problem) if problem.is_closed_pipe() => ExitCode::SUCCESS,
        Err(problem) => complain(&problem, json, contract.as_deref()),
    }
}

/// What was typed makes no command. Help and version come this way, too.
fn usage(error: &clap::Error) -> ExitCode {
    let asked_for_json = std::env::args_os().any(|arg| arg == "--json");
    if error.exit_code() == 0 || !asked_for_json {
        // When even that cannot be printed there is nobody left to tell.
        let _ = error.print();
        return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
    }
    let text = error.to_string();
    let what = text.lines().next().unwrap_or_default().trim_start_matches("error: ");
    let problem = Problem::bad("command line", what, "faultwire --help shows what there is");
    complain(&problem, true, None)
}

fn complain(problem: &Problem, json: bool, contract: Option<&str>) -> ExitCode {
    edge::complain(&match (json, problem.is_startup()) {
        (true, _) => problem.envelope(contract),
        // A program that does not start tells people and programs alike (K15).
        (false, true) => problem.for_people() + &problem.envelope(contract),
        (false, false) => problem.for_people(),
    });
    ExitCode::from(2)
}

fn run(args: Args) -> Result<Done, Problem> {
    let json = args.json;
    match args.command {
        Command::Contract(ContractCommand::List) => command::contract::list(json),
        Command::Contract(ContractCommand::Show { contract }) => {
            command::contract::show(&contract, json)
        }
        Command::Contract(ContractCommand::Lint { contracts }) => {
            command::contract::lint(&contracts, json)
        }
        Command::Contract(ContractCommand::Diff { old, new }) => {
            command::contract::diff(&old, &new, json)
        }
        Command::Contract(ContractCommand::Schema(args)) => command::contract::schema(&args),
        Command::Explain(args) => command::explain::run(&args, json),
        Command::Render(args) => command::render::run(&args),
        Command::Decode(args) => command::decode::run(&args),
        Command::Classify(args) => command::classify::run(&args),
        Command::Redact(args) => command::redact::run(&args),
        Command::Retry(args) => command::retry::run(&args),
        Command::Alerts(command) => command::alerts::run(&command),
        Command::Audit(command) => command::audit::run(&command, json),
        Command::Wrap(args) => command::wrap::run(&args),
        Command::Demo => demo::run(json),
        Command::DemoServer => Ok(Done::Fine),
        Command::Serve(args) => command::serve::run(args).map_err(Problem::at_start),
        Command::Completions { shell } => command::completions::run(shell),
    }
}
