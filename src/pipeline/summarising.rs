//! Summaries of a conversation memory by a model, under the same journal, caps and prices as every other request.

use super::adjudicate::{BatchBill, Halt, ModelUsage, NoAnswer, answered, waiting_client};
use super::extractor::ModelSource;
use super::model_client::ModelClient;
use super::namespace::namespace_of_folder;
use crate::conversation_memory::{Absorbed, ConversationMemory};
use crate::domain::{
    Message, OutputMode, Purpose, Reply, Request, Role, Session, Tokens, ToolSpec,
};
use crate::llm::prompt::SummaryPrompt;
use crate::llm::{ModelDialogue, Step};
use crate::privacy::{Gate, Redacted};
use crate::store::StoreResult;
use serde_json::Value;
use std::sync::Arc;

const SUMMARY_TOKENS_MAX: Tokens = 1_000;

pub(crate) struct Summariser {
    client: ModelClient,
    prompt: SummaryPrompt,
    /// Request without its message.
    request: Request,
    namespace: String,
    pub shown: u64,
    pub usage: ModelUsage,
}

pub(crate) enum Summarised {
    Done,
    /// The answer is empty; the messages stay and are shown again with the next request.
    Empty,
    /// There is no answer, for this reason; the messages stay.
    Unanswered(String),
    Stopped,
}

/// A dialogue of one request whose answer is plain text.
struct PlainText;

impl Summariser {
    /// `session` is the conversation, if the store or its transcript names it; its namespace is billed.
    pub(crate) async fn new(
        source: ModelSource<'_>,
        session: Option<&Session>,
    ) -> StoreResult<Summariser> {
        let config = source.config;
        let named = session.map(|session| session.namespace.clone()).filter(|it| !it.is_empty());
        let folder = session.and_then(|session| session.cwd.as_ref());
        let of_folder = || {
            let folder = folder.map_or("", Redacted::as_str);
            namespace_of_folder(folder, &Gate::new(&config.pii))
        };
        let namespace = named.or_else(|| config.namespace.clone()).unwrap_or_else(of_folder);
        let request = Request {
            model: source.model_name.to_owned(),
            messages: Vec::new(),
            rung: OutputMode::Text,
            tool: Arc::new(ToolSpec::new("summary", String::new(), Value::Null)),
            reply_tokens_max: SUMMARY_TOKENS_MAX.min(config.model.reply_tokens_max),
            temperature: config.model.temperature,
            generation: 0,
        };
        let (prompt, usage) = (SummaryPrompt::built_in(), ModelUsage::default());
        let client = waiting_client(source).await?;
        Ok(Summariser { client, prompt, request, namespace, shown: 0, usage })
    }

    pub(crate) async fn summarise(
        &mut self,
        memory: &mut ConversationMemory,
    ) -> StoreResult<Summarised> {
        let Some(due) = memory.due() else { return Ok(Summarised::Done) };
        let content = due.prompt(&self.prompt);
        let messages = vec![Message { role: Role::User, content }];
        let request = Request { messages, ..self.request.clone() };
        let (namespace, purpose) = (self.namespace.as_str(), Purpose::Summarise);
        // With an empty `about`, the answer is erased as soon as any session is forgotten.
        let bill = BatchBill { namespace, task: "summarising", purpose, about: Vec::new() };
        let (ended, spent) = self.client.run_billed(PlainText, request, bill).await?;
        self.shown += due.messages.len() as u64;
        self.usage.add(0, spent);
        Ok(match answered(ended) {
            Ok(summary) => match memory.absorb(&due, &summary) {
                Absorbed::Taken => Summarised::Done,
                Absorbed::Empty | Absorbed::Stale => Summarised::Empty,
            },
            Err(NoAnswer::Open(_, why) | NoAnswer::Halted(Halt::Needs(why))) => {
                Summarised::Unanswered(why)
            }
            Err(NoAnswer::Halted(Halt::Stopped)) => Summarised::Stopped,
        })
    }
}

impl ModelDialogue for PlainText {
    type Outcome = Redacted;

    fn reply(&mut self, reply: &Reply) -> Step<Redacted> {
        Step::Done(reply.content.clone())
    }

    fn output_mode_refused(&mut self) -> Step<Redacted> {
        self.stop()
    }

    fn stop(&mut self) -> Step<Redacted> {
        Step::Done(Redacted::default())
    }

    fn has_partial_result(&self) -> bool {
        false
    }
}
