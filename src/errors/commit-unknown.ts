// The connection to the database was lost during a commit, and nobody can tell whether it took effect. To repeat the
// change blindly could make it twice.

export class CommitUnknown extends Error {
  override name = "CommitUnknown";
}
