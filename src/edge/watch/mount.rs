//! Whether a folder lies on a file system that others write to from elsewhere: its events tell of
//! this machine's changes only.

use std::path::Path;

/// Where Linux lists what is mounted; other systems have no such file.
const MOUNTS: &str = "/proc/self/mountinfo";
/// Kinds of file systems that are shared with other machines or with a host.
const SHARED: [&str; 16] = [
    "nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ceph", "lustre", "ocfs2", "gfs2",
    "virtiofs", "vboxsf", "vmhgfs", "prl_fs", "fuse",
];

/// The kind of file system that `path`, which is absolute and without links, lies on, if it is a
/// shared one.
pub(super) fn shared_kind(path: &Path) -> Option<String> {
    kind_in(&std::fs::read_to_string(MOUNTS).ok()?, path)
}

fn kind_in(mounts: &str, path: &Path) -> Option<String> {
    // Of two mounts on one folder the later one is seen.
    let on = mounts.lines().filter_map(parse).filter(|(at, _)| path.starts_with(at));
    let (_, kind) = on.max_by_key(|(at, _)| at.len())?;
    // `fuse.sshfs` and the like; `fuseblk` is a disk of this machine.
    let is_shared = SHARED.contains(&kind) || kind.starts_with("fuse.");
    is_shared.then(|| kind.to_owned())
}

/// The folder and the kind of a line such as `36 35 98:0 / /mnt/a\040b rw shared:1 - ext3 /dev/sda rw`.
fn parse(line: &str) -> Option<(String, &str)> {
    let (place, source) = line.split_once(" - ")?;
    let at = place.split(' ').nth(4)?;
    let at = at.replace("\\040", " ").replace("\\011", "\t").replace("\\134", "\\");
    Some((at, source.split(' ').next()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = r"22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
30 22 0:26 / /home rw - nfs4 server:/home rw,vers=4.2
31 30 254:1 / /home/me/local rw - xfs /dev/vdb rw
32 22 0:27 / /mnt/my\040share rw shared:3 master:1 - fuse.sshfs me@there:/ rw
33 22 0:28 / /stick rw - fuseblk /dev/sdb1 rw
34 22 0:28 / /twice rw - ext4 /dev/sdc rw
35 34 0:28 / /twice rw - cifs //there/x rw
half a line";

    #[test]
    fn the_nearest_mount_says_whether_a_folder_is_shared() {
        let kind = |path: &str| kind_in(MOUNTS, Path::new(path));
        for path in ["/", "/homeless", "/home/me/local/x", "/stick/x", "/mnt", "relative"] {
            assert_eq!(kind(path), None, "{path}");
        }
        assert_eq!(kind("/home/me/.claude").as_deref(), Some("nfs4"));
        assert_eq!(kind("/mnt/my share/x").as_deref(), Some("fuse.sshfs"));
        assert_eq!(kind("/twice/x").as_deref(), Some("cifs"));
        assert_eq!(kind_in("", Path::new("/")), None);
    }
}
