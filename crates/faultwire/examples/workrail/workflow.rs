//! Workflows: JSON files with steps, and the way from one step to the next.

use std::path::Path;

use faultwire::workrail::Failure;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::failures::{AckFailure, WorkflowError, Wrong};
use crate::store::hash;

#[derive(Deserialize)]
pub struct Workflow {
    #[serde(skip)]
    pub hash: String,
    /// What must be known to begin it.
    #[serde(default)]
    requires: Vec<String>,
    steps: Vec<Step>,
}

#[derive(Serialize, Deserialize)]
pub struct Step {
    id: String,
    prompt: String,
    /// It is left out unless this holds.
    #[serde(skip_serializing)]
    when: Option<Condition>,
    /// It is done again until this holds.
    #[serde(skip_serializing)]
    until: Option<Condition>,
    /// How often at most.
    #[serde(skip_serializing)]
    most: Option<usize>,
    /// Which step comes next, if not the one below.
    #[serde(skip_serializing)]
    then: Option<String>,
}

#[derive(Deserialize)]
struct Condition {
    key: String,
    equals: Value,
}

/// How far a workflow is.
#[derive(Default, Serialize, Deserialize)]
pub struct State {
    pub context: Map<String, Value>,
    /// The step to be done, while there is one.
    pending: Option<usize>,
    /// How often it was done already.
    times: usize,
}

impl Workflow {
    pub fn read(dir: &Path, id: &str) -> Result<Self, WorkflowError> {
        let absent =
            || WorkflowError(Wrong::WorkflowNotFound, format!("There is no workflow {id}"));
        if !id.chars().all(|c| c.is_ascii_alphanumeric() || c == '-') {
            return Err(absent());
        }
        let text = std::fs::read(dir.join(format!("{id}.json"))).map_err(|_| absent())?;
        let mut workflow: Self = serde_json::from_slice(&text)
            .map_err(|error| WorkflowError(Wrong::InvalidState, format!("{id}: {error}")))?;
        if let Some(step) = workflow.steps.iter().find(|s| s.until.is_some() != s.most.is_some()) {
            let what = format!("The loop of {} needs both until and most", step.id);
            return Err(WorkflowError(Wrong::InvalidLoop, what));
        }
        workflow.hash = hash(&text);
        Ok(workflow)
    }

    pub fn step(&self, state: &State) -> Option<&Step> {
        self.steps.get(state.pending?)
    }

    pub fn begin(&self, context: Map<String, Value>) -> Result<State, WorkflowError> {
        if let Some(key) = self.requires.iter().find(|key| !context.contains_key(*key)) {
            return Err(WorkflowError(Wrong::MissingContext, format!("The context lacks {key}")));
        }
        self.from(0, State { context, ..State::default() })
    }

    /// The state after the pending step, which brought this.
    pub fn next(&self, mut state: State, output: Value) -> Result<State, Failure> {
        let (Some(at), Some(step)) = (state.pending, self.step(&state)) else {
            return Err(AckFailure::NoPendingStep.into());
        };
        let Value::Object(output) = output else {
            let message = "The output of a step is an object".to_owned();
            return Err(AckFailure::AdvanceApplyFailed { message }.into());
        };
        state.context.extend(output);
        if let (Some(until), Some(most)) = (&step.until, step.most)
            && !until.holds(&state.context)?
        {
            state.times += 1;
            if state.times < most {
                return Ok(state);
            }
            let what = format!("{} was done {most} times", step.id);
            return Err(WorkflowError(Wrong::MaxIterationsExceeded, what).into());
        }
        state.times = 0;
        let Some(then) = &step.then else { return Ok(self.from(at + 1, state)?) };
        let Some(next) = self.steps.iter().position(|step| step.id == *then) else {
            let message = format!("{} is followed by {then}, which is no step", step.id);
            return Err(AckFailure::AdvanceNextFailed { message }.into());
        };
        Ok(self.from(next, state)?)
    }

    /// The first step from here on that is to be done.
    fn from(&self, at: usize, mut state: State) -> Result<State, WorkflowError> {
        state.pending = None;
        for (index, step) in self.steps.iter().enumerate().skip(at) {
            if step.when.as_ref().map_or(Ok(true), |when| when.holds(&state.context))? {
                state.pending = Some(index);
                break;
            }
        }
        Ok(state)
    }
}

impl Condition {
    fn holds(&self, context: &Map<String, Value>) -> Result<bool, WorkflowError> {
        let what = || format!("A condition asks for {}, which nobody set", self.key);
        let value = context.get(&self.key);
        let value = value.ok_or_else(|| WorkflowError(Wrong::ConditionEvalFailed, what()))?;
        Ok(*value == self.equals)
    }
}
