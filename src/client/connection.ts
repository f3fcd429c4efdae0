/** Where a service listens, and who we are there. */
export interface Connection {
  host: string;
  port: number;
  user: string;
  password: string;
  /** What on the command line or in the environment gave the password: `--password`; absent: the file did. */
  passwordFrom?: string;
  /** The file that it came from; absent when flags gave everything. */
  file?: string;
  /** The process that the file names. */
  pid?: number;
  /** Found in the compatible application's directory, not in ours. */
  foreign: boolean;
  reached: Reached;
}

/** What shows, before anything is sent, that whoever listens there is the one who is meant. */
export type Reached =
  /** A Unix socket that no other user can have made. Host and port are for texts alone. */
  | { by: 'socket'; path: string }
  /** The user named host or port, or it is this process. */
  | { by: 'word' }
  /** A service of ours proves that it knows the password of the file. `orUser`: what cannot is taken as under `user`. */
  | { by: 'proof'; password: string; orUser?: true }
  /** The program that listens is this user's. `unseen`: one that this system does not show is taken as it is. */
  | { by: 'user'; unseen?: 'accepted' };
