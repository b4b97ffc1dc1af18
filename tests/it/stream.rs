//! A stream of its own on the NATS server of this machine, where there is one.

use super::server::say_left_out;
use async_nats::jetstream::{self, Context, stream};
use futures_util::TryStreamExt;
use std::net::{SocketAddr, TcpStream};
use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tokio::runtime::Runtime;

/// Where NATS listens.
const USUAL: ([u8; 4], u16) = ([127, 0, 0, 1], 4222);

/// What is said where there is none.
const LEFT_OUT: &str = "NATS: no server at 127.0.0.1:4222: `worker --from` was not tried; \
     start `nats-server -js` to try it";

/// A stream; removed with what it left when dropped.
pub(crate) struct Stream {
    runtime: Runtime,
    context: Context,
    name: String,
    /// What `--from` takes.
    pub(crate) url: String,
}

impl Stream {
    /// A new stream; none where no server answers, which is said once.
    pub(crate) fn new() -> Option<Stream> {
        static SAID: Once = Once::new();
        static MADE: AtomicU32 = AtomicU32::new(0);
        let address = SocketAddr::from(USUAL);
        if TcpStream::connect_timeout(&address, Duration::from_secs(1)).is_err() {
            SAID.call_once(|| say_left_out(LEFT_OUT));
            return None;
        }
        let runtime = tokio::runtime::Builder::new_multi_thread();
        let runtime = { runtime }.worker_threads(1).enable_all().build().unwrap();
        let made = MADE.fetch_add(1, Ordering::Relaxed);
        let name = format!("annalist_it_{}_{made}", std::process::id());
        let url = format!("nats://{address}/{name}");
        let context = runtime.block_on(async {
            jetstream::new(async_nats::connect(address.to_string()).await.unwrap())
        });
        let subjects = vec![format!("{name}.work")];
        let config = stream::Config { name: name.clone(), subjects, ..stream::Config::default() };
        runtime.block_on(context.create_stream(config)).unwrap();
        Some(Stream { runtime, context, name, url })
    }

    pub(crate) fn publish(&self, payload: &str) {
        let (subject, payload) = (format!("{}.work", self.name), payload.to_owned());
        self.runtime.block_on(async {
            self.context.publish(subject, payload.into()).await.unwrap().await.unwrap();
        });
    }

    /// Why messages were set aside.
    pub(crate) fn dead_letters(&self) -> Vec<String> {
        let subject = format!("annalist.dead.{}", self.name);
        self.runtime.block_on(async {
            let holder = self.context.stream_by_subject(&subject).await.unwrap();
            let holder = self.context.get_stream(holder).await.unwrap();
            let counted = holder.info_builder().subjects(&subject).fetch().await.unwrap();
            let counts: Vec<(String, usize)> = counted.try_collect().await.unwrap();
            let count: usize = counts.iter().map(|(_, count)| count).sum();
            let last = holder.raw_message_builder().last_by_subject(&subject).send().await.unwrap();
            let reason = last.headers.get("Annalist-Reason").unwrap().to_string();
            vec![reason; count]
        })
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.runtime.block_on(async {
            let _ = self.context.delete_stream(&self.name).await;
            let subject = format!("annalist.dead.{}", self.name);
            let Ok(holder) = self.context.stream_by_subject(&subject).await else { return };
            let Ok(holder) = self.context.get_stream(holder).await else { return };
            let _ = holder.purge().filter(subject).await;
        });
    }
}
