//! What a tool had promised of its results, and the comparison of a result with that.

use std::sync::Arc;

use faultwire::output::Mismatch;

use super::Call;
use crate::tools::ListedTool;

/// What a tool promises of its results.
#[derive(Default)]
pub(crate) enum Promise {
    /// Its list was not known.
    #[default]
    Unknown,
    /// It declares no output schema.
    Nothing,
    /// They match the output schema of this tool.
    Output(Arc<ListedTool>),
}

/// A comparison that may take long, and has to be made before its reply is looked at again.
pub(crate) struct Comparison {
    /// Of the call.
    id: Box<str>,
    name: Box<str>,
    tool: Arc<ListedTool>,
    structured: Option<Box<str>>,
}

/// What is known of a comparison that may take long.
#[derive(Default)]
pub(crate) enum Compared {
    /// None was needed so far.
    #[default]
    No,
    /// One is to be made.
    Due,
    /// It was made: what it found.
    Made(Box<(Comparison, Option<Mismatch>)>),
}

impl Comparison {
    /// Of which call.
    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    /// Makes it, on this thread.
    pub(crate) fn made(self) -> Compared {
        let found = self.tool.output(&self.name).mismatch(self.structured.as_deref());
        Compared::Made(Box::new((self, found)))
    }

    fn is_of(&self, tool: &Arc<ListedTool>, structured: Option<&str>) -> bool {
        Arc::ptr_eq(&self.tool, tool) && self.structured.as_deref() == structured
    }
}

impl Call {
    /// Its tool, as the server lists it when the call is sent.
    pub(crate) fn promised_by(&mut self, tool: &Arc<ListedTool>) {
        self.promise = if tool.facts.has_output_schema {
            Promise::Output(Arc::clone(tool))
        } else {
            Promise::Nothing
        };
    }

    /// Whether the output schema of this tool counts for it.
    pub(crate) fn is_promised_by(&self, tool: &Arc<ListedTool>) -> bool {
        tool.facts.has_output_schema
            && match &self.promise {
                Promise::Output(promised) => Arc::ptr_eq(promised, tool),
                Promise::Unknown => true,
                Promise::Nothing => false,
            }
    }

    /// The comparison that has to be made first, if it may take long and was not made yet.
    pub(crate) fn comparison_due(
        &mut self,
        tool: &Arc<ListedTool>,
        structured: Option<&str>,
    ) -> Option<Comparison> {
        let is_quick = || tool.is_output_quick(structured.map_or(0, str::len));
        if !matches!(self.compared, Compared::No) || is_quick() {
            return None;
        }
        let (id, name) = (self.id().into(), self.tool()?.into());
        self.compared = Compared::Due;
        let structured = structured.map(Into::into);
        Some(Comparison { id, name, tool: Arc::clone(tool), structured })
    }

    /// How a result differs from its schema, if it does; an error if that was not found out.
    pub(crate) fn mismatch(
        &self,
        name: &str,
        tool: &Arc<ListedTool>,
        structured: Option<&str>,
    ) -> Result<Option<Mismatch>, ()> {
        match &self.compared {
            Compared::Made(made) if made.0.is_of(tool, structured) => Ok(made.1.clone()),
            Compared::No if tool.is_output_quick(structured.map_or(0, str::len)) => {
                Ok(tool.output(name).mismatch(structured))
            }
            _ => Err(()),
        }
    }
}
