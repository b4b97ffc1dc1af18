//! Uploaded bytes: in memory while they are few, then in an unnamed temporary file that only this
//! process can read.

use std::io::{self, Read, Seek, SeekFrom, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tempfile::SpooledTempFile;

const MEMORY_BYTES_MAX: usize = 256 * 1024;

#[derive(Debug)]
pub(crate) struct Upload {
    file: Mutex<SpooledTempFile>,
    bytes: u64,
}

impl Upload {
    pub(crate) fn new() -> Upload {
        Upload { file: Mutex::new(SpooledTempFile::new(MEMORY_BYTES_MAX)), bytes: 0 }
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.bytes += bytes.len() as u64;
        self.file().write_all(bytes)
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    fn file(&self) -> MutexGuard<'_, SpooledTempFile> {
        self.file.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Read for &Upload {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.file().read(buffer)
    }
}

impl Seek for &Upload {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.file().seek(to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_sent_is_read_however_much_it_is() {
        for bytes in [0, 10, 3 * MEMORY_BYTES_MAX] {
            let sent: Vec<u8> = (0..bytes).map(|at| at as u8).collect();
            let mut upload = Upload::new();
            sent.chunks(1_000).for_each(|chunk| upload.push(chunk).unwrap());
            assert_eq!(upload.bytes(), bytes as u64);
            for _ in 0..2 {
                let mut read = Vec::new();
                (&upload).rewind().unwrap();
                (&upload).read_to_end(&mut read).unwrap();
                assert_eq!(read, sent);
            }
        }
    }
}
