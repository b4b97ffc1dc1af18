use super::*;
use axum::http::StatusCode;
use axum::routing::{get, post};
use std::future::pending;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Larger than the socket buffers of a connection.
const LARGE: usize = 64 * 1024 * 1024;

/// Starts a server on a free port, on the runtime of the test.
async fn serve() -> SocketAddr {
    let listener = HttpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0))).await.unwrap();
    let addr = listener.addr();
    assert_ne!(addr.port(), 0, "the port that was taken");
    tokio::spawn(listener.serve(router(), CancellationToken::new()));
    addr
}

fn router() -> Router {
    let read = async |body: Body| match axum::body::to_bytes(body, usize::MAX).await {
        Ok(bytes) => (StatusCode::OK, bytes.len().to_string()),
        Err(error) => (StatusCode::REQUEST_TIMEOUT, error.to_string()),
    };
    Router::new()
        .route("/", get("well"))
        .route("/length", post(read))
        .route("/never", get(pending::<&'static str>))
        .route("/second", get(async || sleep(Duration::from_secs(1)).await))
        .route("/large", get(async || vec![b'x'; LARGE]))
        .route("/refused", post(StatusCode::UNAUTHORIZED))
}

/// Sends bytes and reads until the server closes the connection.
async fn send(addr: SocketAddr, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(addr).await.unwrap();
    // The server may respond and reset the connection before everything is sent.
    let _ = stream.write_all(bytes).await;
    let mut said = Vec::new();
    let _ = stream.read_to_end(&mut said).await;
    String::from_utf8(said).unwrap()
}

async fn is_well(addr: SocketAddr) -> bool {
    send(addr, b"GET / HTTP/1.1\r\nconnection: close\r\n\r\n").await.ends_with("well")
}

fn status(said: &str) -> u16 {
    said.strip_prefix("HTTP/1.1 ").unwrap().split(' ').next().unwrap().parse().unwrap()
}

#[tokio::test]
async fn garbage_is_refused_and_harms_nobody() {
    let addr = serve().await;
    let long = format!("GET / HTTP/1.1\r\nx: {}\r\n\r\n", "y".repeat(100_000));
    let many = format!("GET / HTTP/1.1\r\n{}\r\n", "x: y\r\n".repeat(100));
    let path = format!("GET /{} HTTP/1.1\r\n\r\n", "a".repeat(100_000));
    for garbage in [
        &b"\x00\xff\xfe\r\n\r\n"[..],
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"GET / HTTP/1.1\r\nno colon\r\n\r\n",
        b"POST / HTTP/1.1\r\ncontent-length: 99999999999999999999\r\n\r\n",
        long.as_bytes(),
        many.as_bytes(),
        path.as_bytes(),
    ] {
        let said = send(addr, garbage).await;
        let shown = String::from_utf8_lossy(&garbage[..garbage.len().min(40)]);
        assert!(said.is_empty() || status(&said) >= 400, "{shown}: {said}");
    }
    assert!(is_well(addr).await);
}

#[tokio::test]
async fn a_head_that_cannot_be_read_is_refused_and_the_refusal_arrives() {
    let addr = serve().await;
    let long = format!("GET / HTTP/1.1\r\nx: {}\r\n\r\n", "y".repeat(1_000_000));
    let many = format!("GET / HTTP/1.1\r\n{}\r\n", "x: y\r\n".repeat(100));
    let path = format!("GET /{} HTTP/1.1\r\n\r\n", "a".repeat(100_000));
    for (head, code) in [
        (long.as_str(), 431),
        (&many, 431),
        (&path, 431),
        ("GET / HTTP/1.1\r\nno colon\r\n\r\n", 400),
    ] {
        for before in ["", "GET / HTTP/1.1\r\n\r\n"] {
            let said = send(addr, format!("{before}{head}").as_bytes()).await;
            let said = if before.is_empty() { &said } else { said.split_once("well").unwrap().1 };
            assert_eq!(status(said), code, "{said}");
            assert!(said.contains("content-length: 0") && said.ends_with("\r\n\r\n"), "{said}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn silence_is_not_waited_for_for_ever() {
    let addr = serve().await;
    for begun in [&b""[..], b"GET /", b"GET / HTTP/1.1\r\nhost: x\r\n"] {
        let said = send(addr, begun).await;
        assert!(said.is_empty() || status(&said) == 408, "{said}");
    }
    let said = send(addr, b"GET / HTTP/1.1\r\n\r\n").await;
    assert_eq!(status(&said), 200, "a connection without a further request ends: {said}");
    let said = send(addr, b"POST /length HTTP/1.1\r\ncontent-length: 9\r\n\r\n123").await;
    assert_eq!(status(&said), 408, "{said}");
    assert!(said.ends_with("less than 8192 bytes a second"), "{said}");
}

#[tokio::test(start_paused = true)]
async fn a_body_may_take_its_time_if_it_comes_fast_enough() {
    let addr = serve().await;
    let mut stream = TcpStream::connect(addr).await.unwrap();
    let (chunk, chunks) = ([b'x'; 8 * 1024], 60);
    let length = chunk.len() * chunks;
    let head =
        format!("POST /length HTTP/1.1\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    for _ in 0..chunks {
        stream.write_all(&chunk).await.unwrap();
        sleep(Duration::from_millis(500)).await;
    }
    let mut said = String::new();
    stream.read_to_string(&mut said).await.unwrap();
    assert!(said.ends_with(&length.to_string()), "{said}");
}

#[tokio::test(start_paused = true)]
async fn a_thousand_connections_that_send_a_byte_a_second_harm_nobody() {
    let addr = serve().await;
    let mut slow = JoinSet::new();
    for number in 0..1_000_u32 {
        slow.spawn(async move {
            // Bounds the number of open files of this process.
            sleep(Duration::from_millis(u64::from(number) * 15)).await;
            let mut stream = TcpStream::connect(addr).await.unwrap();
            while stream.write_all(b"G").await.is_ok() {
                let mut byte = [0];
                match timeout(Duration::from_secs(1), stream.read(&mut byte)).await {
                    Ok(_) => return,
                    Err(_) => continue,
                }
            }
        });
    }
    let mut answered = 0;
    while slow.try_join_next().is_some() || !slow.is_empty() {
        let begun = Instant::now();
        assert!(is_well(addr).await);
        assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
        answered += 1;
        sleep(Duration::from_millis(100)).await;
    }
    assert!(answered > 100, "{answered} while they were there");
}

#[tokio::test]
async fn the_oldest_connection_without_a_request_makes_room() {
    let addr = serve().await;
    let mut busy = TcpStream::connect(addr).await.unwrap();
    busy.write_all(b"GET /never HTTP/1.1\r\n\r\n").await.unwrap();
    assert!(is_well(addr).await);
    let mut slow = Vec::new();
    for _ in 0..CONNECTIONS_MAX {
        let mut connection = TcpStream::connect(addr).await.unwrap();
        connection.write_all(b"G").await.unwrap();
        slow.push(connection);
    }
    assert!(is_well(addr).await);
    let waits = |stream: &TcpStream| {
        stream.try_read(&mut [0]).is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
    };
    assert!(waits(slow.last().unwrap()), "the newest was given up first");
    assert!(waits(&slow[CONNECTIONS_MAX / 2]));
    assert!(waits(&busy), "a request under way was given up");
    assert!(!waits(&slow[0]), "nobody made room");
}

/// Opens connections with a request in flight.
async fn busy(addr: SocketAddr, path: &str, count: usize) -> Vec<TcpStream> {
    let mut busy = Vec::new();
    for _ in 0..count {
        let mut connection = TcpStream::connect(addr).await.unwrap();
        let request = format!("GET {path} HTTP/1.1\r\n\r\n");
        connection.write_all(request.as_bytes()).await.unwrap();
        busy.push(connection);
    }
    busy
}

#[tokio::test(start_paused = true)]
async fn the_last_connection_has_time_for_its_request() {
    let addr = serve().await;
    let _busy = busy(addr, "/never", CONNECTIONS_MAX - 1).await;
    // Lets the server read all of them.
    sleep(Duration::from_secs(1)).await;
    let mut newcomer = TcpStream::connect(addr).await.unwrap();
    sleep(Duration::from_secs(2)).await;
    newcomer.write_all(b"GET / HTTP/1.1\r\nconnection: close\r\n\r\n").await.unwrap();
    let mut said = String::new();
    newcomer.read_to_string(&mut said).await.unwrap();
    assert!(said.ends_with("well"), "{said}");
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_becomes_idle_makes_room_for_one_that_waits() {
    let addr = serve().await;
    let _busy = busy(addr, "/second", CONNECTIONS_MAX).await;
    let begun = Instant::now();
    assert!(is_well(addr).await);
    assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_client_that_reads_nothing_is_given_up() {
    let addr = serve().await;
    let mut deaf = busy(addr, "/large", 1).await.remove(0);
    deaf.readable().await.unwrap();
    sleep(WRITE_WAIT_MAX * 2).await;
    let mut read = Vec::new();
    let _ = deaf.read_to_end(&mut read).await;
    assert!(!read.is_empty() && read.len() < LARGE, "{}", read.len());
}

#[tokio::test]
async fn a_client_that_sends_all_of_its_body_first_reads_the_refusal() {
    let addr = serve().await;
    for megabytes in [1, 8, 64] {
        let length = megabytes * 1024 * 1024;
        let mut stream = TcpStream::connect(addr).await.unwrap();
        let head = format!("POST /refused HTTP/1.1\r\ncontent-length: {length}\r\n\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();
        stream.write_all(&vec![b'x'; length]).await.unwrap();
        let mut said = String::new();
        stream.read_to_string(&mut said).await.unwrap();
        assert_eq!(status(&said), 401, "{megabytes}: {said}");
    }
}

#[tokio::test]
async fn address_that_cannot_be_had_is_one_clear_line() {
    let first = HttpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0))).await.unwrap();
    let again = HttpListener::bind(first.addr()).await.unwrap_err();
    assert_eq!(again, BindError { addr: first.addr(), kind: io::ErrorKind::AddrInUse });
    let said = again.to_string();
    assert!(said.contains(&first.addr().to_string()) && said.contains("in use"), "{said}");
    assert!(!said.contains('\n'));
    // Address reserved for documentation (TEST-NET-1), so no machine has it.
    let elsewhere = HttpListener::bind(SocketAddr::from(([192, 0, 2, 1], 0))).await.unwrap_err();
    assert_eq!(elsewhere.kind, io::ErrorKind::AddrNotAvailable);
}

#[tokio::test(start_paused = true)]
async fn server_ends_when_it_is_told_to_and_lets_requests_end() {
    let listener = HttpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0))).await.unwrap();
    let (addr, until) = (listener.addr(), CancellationToken::new());
    let slow = get(async || {
        sleep(STOP_WAIT_MAX / 2).await;
        "well"
    });
    let router = router().route("/slow", slow);
    let server = tokio::spawn(listener.serve(router, until.clone()));
    let never = tokio::spawn(send(addr, b"GET /never HTTP/1.1\r\n\r\n"));
    let slow = tokio::spawn(send(addr, b"GET /slow HTTP/1.1\r\n\r\n"));
    sleep(Duration::from_secs(1)).await;
    until.cancel();
    server.await.unwrap();
    assert_eq!(never.await.unwrap(), "");
    assert!(slow.await.unwrap().ends_with("well"));
    HttpListener::bind(addr).await.unwrap();
}

// With time that runs: paused time passes while the kernel moves the bytes.
#[tokio::test]
async fn the_end_waits_for_no_request_that_has_not_come_whole() {
    let listener = HttpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0))).await.unwrap();
    let (addr, until) = (listener.addr(), CancellationToken::new());
    let server = tokio::spawn(listener.serve(router(), until.clone()));
    let half = [
        "",
        "GET / HT",
        "GET / HTTP/1.1\r\nx: y\r\n",
        "GET / HTTP/1.1\r\n\r\n",
        "GET / HTTP/1.1\r\n\r\nGET /",
        "POST /length HTTP/1.1\r\ncontent-length: 9\r\n\r\n123",
    ];
    let half = half.map(|sent| tokio::spawn(send(addr, sent.as_bytes())));
    sleep(Duration::from_secs(1)).await;
    let begun = Instant::now();
    until.cancel();
    server.await.unwrap();
    assert!(begun.elapsed() < Duration::from_millis(100), "{:?}", begun.elapsed());
    let mut said = Vec::new();
    for half in half {
        said.push(half.await.unwrap());
    }
    assert!(said[..3].iter().all(String::is_empty), "{said:?}");
    assert!(said[3].ends_with("well") && said[4].ends_with("well"), "{said:?}");
    assert!(said[5].ends_with("the server ends before the body does"), "{said:?}");
}

// With time that runs: paused time would pass the limits while the kernel moves the bytes.
#[tokio::test]
async fn the_end_waits_for_an_answer_that_is_still_being_read() {
    let listener = HttpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0))).await.unwrap();
    let (addr, until) = (listener.addr(), CancellationToken::new());
    let server = tokio::spawn(listener.serve(router(), until.clone()));
    let mut slow = busy(addr, "/large", 1).await.remove(0);
    slow.readable().await.unwrap();
    until.cancel();
    let mut read = Vec::new();
    slow.read_to_end(&mut read).await.unwrap();
    assert!(read.len() > LARGE, "{}", read.len());
    server.await.unwrap();
}
