//! What the rules of classification look for, and where they lead.

use crate::condition::{Aspect, Condition};
use crate::pattern::Pattern;

/// One rule. The first that matches decides.
#[derive(Clone, Debug)]
pub(crate) struct Rule {
    pub name: String,
    pub when: When,
    pub then: Then,
    /// It says what a failure means, and is no sign of one.
    pub weak: bool,
    /// It guesses what a failure means, and does not help to find one.
    pub vague: bool,
}

/// What must be so, all of it.
#[derive(Clone, Debug)]
pub(crate) struct When {
    pub shape: Option<Shape>,
    /// What was said, but for the client's own words.
    pub text: Option<Pattern>,
    /// The same without quotations, paths, URLs and code.
    pub words: Option<Pattern>,
    /// One of the codes by name.
    pub code: Option<Pattern>,
    /// One of these JSON-RPC numbers; empty is any.
    pub rpc: Vec<i64>,
    /// One of these HTTP statuses; empty is any.
    pub status: Vec<i64>,
    /// Whether it names a delay after which to try again, or says that one may.
    pub retry: Option<bool>,
    /// Only where no shared rule knows more than the shape.
    pub generic: bool,
}

/// Where a rule leads: a contract's rule to a code, a shared one to a condition.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Then {
    Code(usize),
    Condition(Condition, Option<Aspect>),
}

/// How a failure was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Shape {
    RpcError,
    ToolError,
    SoftFailure,
}

impl Shape {
    pub(crate) const ALL: [Self; 3] = [Self::RpcError, Self::ToolError, Self::SoftFailure];

    /// The condition of a failure about which nothing else is known.
    pub(crate) const fn condition(self) -> Condition {
        match self {
            Self::RpcError => Condition::RpcError,
            Self::ToolError => Condition::ToolError,
            Self::SoftFailure => Condition::SoftFailure,
        }
    }

    pub(crate) const fn name(self) -> &'static str {
        self.condition().name()
    }
}

/// The signs of a soft failure.
#[derive(Debug)]
pub(crate) struct Signs {
    /// How a text begins that is a failure and nothing else.
    pub text: Vec<Pattern>,
    /// How a text begins that a program made of a failure.
    pub machine: Vec<Pattern>,
    /// Those that only an SDK makes, whatever the tool returns.
    pub sdk: Pattern,
    /// How a text begins that is a failure where the tool makes its own answers.
    pub loose: Vec<Pattern>,
    /// The head of a failure: "Error getting the track: …". More may stand below it.
    pub heads: Pattern,
    /// Sentences into which a program put a value of the call: "Environment _ not found".
    pub templates: Vec<Pattern>,
    /// Those that no search answers that found nothing: "Unknown order _".
    pub refusals: Vec<Pattern>,
    /// How a report of a run begins that failed.
    pub runs: Pattern,
    /// What tools say of their own act: those of these names, when a text begins so.
    pub acts: Vec<(Pattern, Pattern)>,
    /// How a sentence begins that says that an act failed.
    pub failing: Pattern,
    /// A title that says that an act failed, or that a thing is not there.
    pub failed: Pattern,
    /// A sentence that says that the document asked for is not there.
    pub absent: Pattern,
    /// A sentence about the service and not about what was asked for.
    pub service: Pattern,
    /// A statement of what holds always, and not of what happened.
    pub general: Pattern,
    /// A word that says no.
    pub missing: Pattern,
    /// How a sentence begins that says no and names nothing.
    pub refusal: Pattern,
    /// Names of tools that give back what others wrote, byte for byte.
    pub verbatim: Pattern,
    /// Those of them that may give back an object as it was stored.
    pub raw: Pattern,
    /// Names of tools that give back what others wrote, in a form of their own.
    pub documents: Pattern,
    /// Names of tools that run what they are given.
    pub outputs: Pattern,
    /// Names of tools that say how what was run is, and not what it printed.
    pub manages: Pattern,
    /// Names of tools that change something.
    pub writes: Pattern,
    /// Names of tools that read something.
    pub reads: Pattern,
    /// Names of tools that are asked whether something holds.
    pub questions: Pattern,
    /// Names of tools that put a query to a database: what comes back is its answer.
    pub queries: Pattern,
    /// Names of tools whose text was written for the call: by a model, by a person.
    pub authored: Pattern,
    /// Those of them whose text a model writes: it may be any text.
    pub generated: Pattern,
    /// Those of them that look up a page.
    pub pages: Pattern,
    /// Names of tools whose short answers may say that there is nothing.
    pub listing: Pattern,
    /// What a success says of itself.
    pub good: Pattern,
    /// Words of a call that asks for texts about failures.
    pub alarming: Pattern,
    /// Members beside an error that help: `available_templates`.
    pub helpful: Pattern,
    /// What reads like a failure and only says that there is nothing.
    pub innocent: Pattern,
    /// How a text begins that is no sentence: code, a table, a list.
    pub markup: Pattern,
    /// Later lines of such a text, when there are many: frames and the like.
    pub continuation: Pattern,
    /// Members that are `false` in a failure.
    pub flags: Vec<String>,
    /// Flags that answer a question.
    pub verdicts: Vec<String>,
    /// Flags that name an act: false, beside words, they say that it was not done.
    pub done: Vec<String>,
    /// Members that hold the error.
    pub errors: Vec<String>,
    /// Members that say how it went, and the words that say badly.
    pub states: Vec<String>,
    pub bad_states: Vec<String>,
    /// States in capitals that are failures.
    pub bad_names: Pattern,
    /// Members that are a number other than 0 in a failure.
    pub numbers: Vec<String>,
    /// Members that describe a failure: an object with others beside them is a document.
    pub companions: Vec<String>,
}
