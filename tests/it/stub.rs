//! A small OpenAI-compatible server of our own. What it answers is a function of the request; it
//! counts what it is asked, and tells the test when.

use super::input::extracted;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

/// How long a test waits for a request that must come, in seconds; only a broken build takes longer.
const PATIENCE: Duration = Duration::from_secs(120);

/// A request.
#[derive(Debug)]
pub(crate) struct Ask {
    /// The first is 1.
    pub(crate) number: usize,
    /// Its path.
    pub(crate) path: String,
    /// Its headers, names in lower case.
    pub(crate) head: String,
    /// Its body, where it is JSON.
    pub(crate) body: Value,
    /// Its body as it came.
    pub(crate) bytes: Vec<u8>,
}

/// What the server does.
#[derive(Debug)]
pub(crate) enum Answer {
    /// A completion that calls the tool which was offered, with these arguments.
    Call(Value),
    /// The same with arguments as they stand, JSON or not.
    CallText(String),
    /// A completion in words alone.
    Words(String),
    /// A status, headers and a body.
    Status(u16, &'static str, String),
    /// These bytes, and the end of the connection.
    Raw(Vec<u8>),
    /// Nothing until the server ends or is told to go on; then the tool call of the slice.
    Hold,
}

type Script = dyn Fn(&Ask) -> Answer + Send + Sync;

/// The server; ends with the test.
pub(crate) struct Stub {
    shared: Arc<Shared>,
    url: String,
    asked: Receiver<usize>,
}

struct Shared {
    script: Box<Script>,
    count: AtomicUsize,
    /// Requests up to this one are no longer held.
    released: Mutex<usize>,
    release: Condvar,
    asked: Mutex<Sender<usize>>,
}

impl Ask {
    /// The words of the last message from the user that holds a slice.
    pub(crate) fn slice(&self) -> &str {
        let messages = self.body["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
        let mut said = messages.iter().filter_map(|message| message["content"].as_str());
        let slice = said.rfind(|words| words.contains("<transcript-"));
        let words = slice.and_then(|words| words.split_once("<transcript-"));
        words.map_or("", |(_, words)| words)
    }

    /// The tool that is offered, or asked for in another way.
    pub(crate) fn tool(&self) -> &str {
        let offered = self.body["tools"][0]["function"]["name"].as_str();
        let named = || self.said("write_consolidated(").map(|_| "write_consolidated");
        offered.or_else(named).unwrap_or("write_extracted")
    }

    /// The records and memories of a question about memory, as they are shown.
    pub(crate) fn batch(&self) -> Vec<Value> {
        self.lines().into_iter().filter(|it| it["said"].is_null()).collect()
    }

    /// The lines of such a question: messages, records and memories.
    pub(crate) fn lines(&self) -> Vec<Value> {
        let lines = self.said("<batch-").unwrap_or_default().lines();
        lines.filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    /// The last message that holds `mark`.
    pub(crate) fn said(&self, mark: &str) -> Option<&str> {
        let messages = self.body["messages"].as_array()?;
        let mut said = messages.iter().filter_map(|message| message["content"].as_str());
        said.rfind(|words| words.contains(mark))
    }

    /// What a good model would answer.
    pub(crate) fn good(&self) -> Answer {
        Answer::Call(extracted(self.slice()))
    }
}

impl Stub {
    /// A server that answers by `script`.
    pub(crate) fn new(script: impl Fn(&Ask) -> Answer + Send + Sync + 'static) -> Stub {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        let (sender, asked) = channel();
        let shared = Arc::new(Shared {
            script: Box::new(script),
            count: AtomicUsize::new(0),
            released: Mutex::new(0),
            release: Condvar::new(),
            asked: Mutex::new(sender),
        });
        let server = Arc::clone(&shared);
        // It lives as long as the test process; its connections end with their clients.
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let server = Arc::clone(&server);
                thread::spawn(move || server.serve(stream));
            }
        });
        Stub { shared, url, asked }
    }

    /// A server that answers well.
    pub(crate) fn good() -> Stub {
        Stub::new(Ask::good)
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// How many requests there were.
    pub(crate) fn count(&self) -> usize {
        self.shared.count.load(Ordering::SeqCst)
    }

    /// Waits until request `number` has come.
    #[track_caller]
    pub(crate) fn until(&self, number: usize) {
        while self.asked.recv_timeout(PATIENCE).expect("the request never came") != number {}
    }

    /// Waits until there were so many requests.
    #[track_caller]
    pub(crate) fn until_count(&self, requests: usize) {
        while self.count() < requests {
            self.asked.recv_timeout(PATIENCE).expect("the request never came");
        }
    }

    /// Waits until something holds that a request brings about.
    #[track_caller]
    pub(crate) fn until_that(&self, holds: impl Fn() -> bool) {
        while !holds() {
            self.asked.recv_timeout(PATIENCE).expect("the request never came");
        }
    }

    /// Lets every request go on that is held, and all that come.
    pub(crate) fn release(&self) {
        *self.shared.released.lock().unwrap() = usize::MAX;
        self.shared.release.notify_all();
    }
}

impl Shared {
    fn serve(&self, stream: TcpStream) {
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        let mut writer = stream;
        while let Some(ask) = self.read(&mut reader) {
            let answer = (self.script)(&ask);
            // Nobody may be listening any more.
            let _ = self.asked.lock().unwrap().send(ask.number);
            let bytes = match answer {
                Answer::Raw(bytes) => {
                    let _ = writer.write_all(&bytes);
                    return;
                }
                Answer::Call(arguments) => completion(ask.tool(), &arguments.to_string()),
                Answer::CallText(arguments) => completion(ask.tool(), &arguments),
                Answer::Words(words) => completed(&json!({"role": "assistant", "content": words})),
                Answer::Status(status, headers, body) => response(status, headers, &body),
                Answer::Hold => {
                    let mut released = self.released.lock().unwrap();
                    while *released < ask.number {
                        released = self.release.wait(released).unwrap();
                    }
                    drop(released);
                    completion(ask.tool(), &extracted(ask.slice()).to_string())
                }
            };
            if writer.write_all(&bytes).is_err() {
                return;
            }
        }
    }

    fn read(&self, reader: &mut BufReader<TcpStream>) -> Option<Ask> {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if reader.read_line(&mut head).ok()? == 0 {
                return None;
            }
        }
        let path = head.split(' ').nth(1)?.to_owned();
        let head = head.to_lowercase();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        let mut bytes = vec![0; length.map_or(0, |length| length.trim().parse().unwrap())];
        reader.read_exact(&mut bytes).ok()?;
        let body = serde_json::from_slice(&bytes).unwrap_or_default();
        let number = self.count.fetch_add(1, Ordering::SeqCst) + 1;
        Some(Ask { number, path, head, body, bytes })
    }
}

/// A completion that calls the tool.
fn completion(tool: &str, arguments: &str) -> Vec<u8> {
    let call = json!({
        "id": "call_1", "type": "function",
        "function": {"name": tool, "arguments": arguments},
    });
    completed(&json!({"role": "assistant", "content": null, "tool_calls": [call]}))
}

/// A completion with this message, 100 tokens sent and 10 answered.
fn completed(message: &Value) -> Vec<u8> {
    let reason = if message["content"].is_null() { "tool_calls" } else { "stop" };
    let body = json!({
        "id": "1", "object": "chat.completion", "created": 1, "model": "stub-1",
        "choices": [{"index": 0, "finish_reason": reason, "message": message}],
        "usage": {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110},
    });
    response(200, "", &body.to_string())
}

fn response(status: u16, headers: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!(
        "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\n{headers}content-length: \
         {length}\r\n\r\n{body}"
    )
    .into_bytes()
}

/// An error as OpenAI words it.
pub(crate) fn error(status: u16, code: &str) -> Answer {
    let body = json!({"error": {"message": "no", "type": "x", "code": code}});
    Answer::Status(status, "", body.to_string())
}
