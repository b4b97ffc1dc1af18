//! Fixtures for tests on a NATS server: a temporary stream on the server at the default port, and
//! own servers if the program is installed.

use super::config::DEAD_STREAM;
use super::connection::Connection;
use super::{NatsError, NatsUrl, Source, SourceConfig, connection};
use async_nats::HeaderMap;
use async_nats::jetstream::message::StreamMessage;
use async_nats::jetstream::{Context, stream};
use futures_util::{FutureExt, TryStreamExt};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::ops::RangeInclusive;
use std::panic::{AssertUnwindSafe, resume_unwind};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tempfile::TempDir;

/// Default port of NATS.
const USUAL_PORT: u16 = 4222;
/// Maximum number of checks for a starting server, every 20 ms.
const LOOKS_MAX: u32 = 500;
/// Id of the first published message.
pub(crate) const ID: &str = "the sender's own";

/// Number that makes stream names unique within the process.
static COUNT: AtomicU32 = AtomicU32::new(0);

/// Server, and a stream on it.
#[derive(Clone)]
pub(crate) struct Place {
    pub(crate) context: Context,
    pub(crate) stream: String,
    /// The server's URL, including scheme and login.
    server: String,
    pub(crate) config: SourceConfig,
}

impl Place {
    /// Connects to a server; the stream does not exist yet.
    pub(crate) async fn at(server: &str) -> Option<Place> {
        let url = NatsUrl::parse(&format!("{server}/none")).unwrap();
        let context = Connection::connect(&url, SourceConfig::default()).await.ok()?.context;
        // The client's own request cannot parse the reply of an older server.
        context.request::<_, _, serde_json::Value>("INFO", &()).await.ok()?;
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let stream = format!("annalist_test_{}_{count}", std::process::id());
        let config = SourceConfig {
            ack_wait: Duration::from_millis(500),
            request_timeout: Duration::from_secs(2),
            ..SourceConfig::default()
        };
        Some(Place { context, stream, server: server.to_owned(), config })
    }

    pub(crate) fn subject(&self) -> String {
        format!("{}.work", self.stream)
    }

    pub(crate) fn stream_config(&self) -> stream::Config {
        let subjects = vec![self.subject()];
        stream::Config { name: self.stream.clone(), subjects, ..stream::Config::default() }
    }

    pub(crate) async fn make_stream(&self) {
        self.context.create_stream(self.stream_config()).await.unwrap();
    }

    pub(crate) fn url(&self) -> NatsUrl {
        NatsUrl::parse(&format!("{}/{}", self.server, self.stream)).unwrap()
    }

    pub(crate) async fn connect(&self) -> Result<Source, NatsError> {
        Source::connect(&self.url(), self.config).await
    }

    pub(crate) async fn source(&self) -> Source {
        self.connect().await.unwrap()
    }

    /// Publishes these numbers as messages; all have headers, number 1 has an id.
    pub(crate) async fn publish(&self, numbers: RangeInclusive<u32>) {
        for number in numbers {
            let mut headers = HeaderMap::new();
            headers.insert("Colour", "blue");
            headers.insert("Annalist-Reason", "forged");
            if number == 1 {
                headers.insert("Nats-Msg-Id", ID);
            }
            let (subject, payload) = (self.subject(), number.to_string());
            let sent = self.context.publish_with_headers(subject, headers, payload.into()).await;
            sent.unwrap().await.unwrap();
        }
    }

    /// Publishes messages with these payloads.
    pub(crate) async fn publish_words(&self, messages: &[Vec<u8>]) {
        for message in messages {
            let sent = self.context.publish(self.subject(), message.clone().into()).await;
            sent.unwrap().await.unwrap();
        }
    }

    /// Number of the stream's dead letters, and the last of them.
    pub(crate) async fn dead_letters(&self) -> (usize, StreamMessage) {
        let subject = format!("annalist.dead.{}", self.stream);
        let holder = self.context.stream_by_subject(&subject).await.unwrap();
        let holder = self.context.get_stream(holder).await.unwrap();
        let counted = holder.info_builder().subjects(&subject).fetch().await.unwrap();
        let counts = counted.try_collect::<Vec<_>>().await.unwrap();
        let count = counts.iter().map(|(_, count)| count).sum();
        let last = holder.raw_message_builder().last_by_subject(&subject).send();
        (count, last.await.unwrap())
    }

    /// Returns a copy with another configuration.
    pub(crate) fn with(&self, config: SourceConfig) -> Place {
        Place { config, ..self.clone() }
    }

    async fn remove(&self) {
        let _ = self.context.delete_stream(&self.stream).await;
        let Ok(dead) = self.context.get_stream(DEAD_STREAM).await else { return };
        let _ = dead.purge().filter(format!("annalist.dead.{}", self.stream)).await;
    }
}

/// Runs a test on the default server and always removes its stream; prints one line if there is no
/// server.
pub(crate) async fn on_nats(test: impl AsyncFnOnce(&Place)) {
    let address = SocketAddr::from(([127, 0, 0, 1], USUAL_PORT));
    let is_there = TcpStream::connect_timeout(&address, Duration::from_secs(1)).is_ok();
    let place = if is_there { Place::at(&format!("nats://{address}")).await } else { None };
    let Some(place) = place else {
        static SAID: Once = Once::new();
        SAID.call_once(|| announce("no JetStream at 127.0.0.1:4222, start `nats-server -js`"));
        return;
    };
    let outcome = AssertUnwindSafe(test(&place)).catch_unwind().await;
    place.remove().await;
    if let Err(failed) = outcome {
        resume_unwind(failed);
    }
}

#[expect(
    clippy::print_stderr,
    reason = "a test that finds nothing must not look like one that passed"
)]
fn announce(why: &str) {
    eprintln!("NATS not tested: {why}");
}

/// Own server, stopped on drop.
pub(crate) struct Server {
    child: Child,
    port: u16,
    folder: TempDir,
    arguments: Vec<String>,
}

impl Server {
    /// Starts a server; `None`, with a printed line, if the program is not installed.
    pub(crate) async fn start(arguments: &[&str]) -> Option<Server> {
        let folder = tempfile::tempdir().unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let arguments = arguments.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>();
        let Some(child) = spawn(port, folder.path(), &arguments) else {
            static SAID: Once = Once::new();
            SAID.call_once(|| announce("no `nats-server` to start: outages, logins"));
            return None;
        };
        let server = Server { child, port, folder, arguments };
        server.answers().await;
        Some(server)
    }

    /// The server's URL with `login` before the host.
    pub(crate) fn url(&self, login: &str) -> String {
        format!("nats://{login}127.0.0.1:{}", self.port)
    }

    /// Kills the server, like a machine failure.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Restarts the server with its stored data.
    pub(crate) async fn revive(&mut self) {
        self.child = spawn(self.port, self.folder.path(), &self.arguments).unwrap();
        self.answers().await;
    }

    async fn answers(&self) {
        let address = SocketAddr::from(([127, 0, 0, 1], self.port));
        for _ in 0..LOOKS_MAX {
            if TcpStream::connect_timeout(&address, Duration::from_secs(1)).is_ok() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("the server did not start");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn spawn(port: u16, folder: &Path, arguments: &[String]) -> Option<Child> {
    let mut command = Command::new("nats-server");
    command.args(["-a", "127.0.0.1", "-p", &port.to_string(), "-js", "-sd"]).arg(folder);
    command.args(arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().ok()
}

/// Numbers of messages.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Pending {
    /// Not delivered yet.
    pub(crate) waiting: u64,
    /// Delivered but not acknowledged.
    pub(crate) held: u64,
}

impl Source {
    /// Counts the messages of all workers.
    pub(crate) async fn pending(&self) -> Result<Pending, NatsError> {
        let info = connection::consumer_info(&self.source_link.link, "counting messages").await?;
        let info =
            info.map_err(|error| self.source_link.link.answer(error, "counting messages"))?;
        let held = u64::try_from(info.num_ack_pending).unwrap();
        Ok(Pending { waiting: info.num_pending, held })
    }

    pub(crate) async fn ack_wait(&self) -> Duration {
        let info = connection::consumer_info(&self.source_link.link, "reading").await.unwrap();
        info.unwrap().config.ack_wait
    }
}
