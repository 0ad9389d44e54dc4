//! The command line of Faultwire.

mod args;
mod call_settings;
mod clients;
mod command;
mod config;
mod demo;
mod demo_server;
mod edge;
mod logging;
mod problem;
mod problem_envelope;
mod progress;
mod resolve;
mod secrets;
mod server_name;
mod snippet;
mod style;
mod terminal;

use std::process::ExitCode;

use clap::Parser;

use args::{Args, Command, ContractCommand};
use problem::Problem;
use problem_envelope::envelope;

/// Memory allocated on one thread is often freed on another here, which is slow with the system's
/// allocator.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// How a command ended, if it did not fail.
pub(crate) enum Done {
    /// No findings.
    Fine,
    /// The command has findings: exit code 1.
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

/// Reports a command line that does not parse. `--help` and `--version` arrive here, too.
fn usage(error: &clap::Error) -> ExitCode {
    let asked_for_json = std::env::args_os().any(|arg| arg == "--json");
    if error.exit_code() == 0 || !asked_for_json {
        // If this cannot be printed, there is no other place to report it.
        let _ = error.print();
        return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
    }
    let text = error.to_string();
    let what = text.lines().next().unwrap_or_default().trim_start_matches("error: ");
    let problem = Problem::bad("command line", what, "run `faultwire --help` to see all commands");
    complain(&problem, true, None)
}

fn complain(problem: &Problem, json: bool, contract: Option<&str>) -> ExitCode {
    edge::complain(&match (json, problem.is_startup()) {
        (true, _) => envelope(problem, contract),
        // A server that cannot start reports to people and to programs (K15).
        (false, true) => problem.for_people() + &envelope(problem, contract),
        (false, false) => problem.for_people(),
    });
    ExitCode::from(2)
}

fn run(args: Args) -> Result<Done, Problem> {
    let json = args.json;
    match args.command {
        Command::Contract(ContractCommand::New(args)) => command::contract::new::run(&args, json),
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
        Command::Contract(ContractCommand::Generate(args)) => {
            command::contract::generate::run(&args, json)
        }
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
