/** A service's address and our credentials. */
export interface Connection {
  host: string;
  port: number;
  user: string;
  password: string;
  /** The flag or variable that supplied the password: `--password`; absent: the file did. */
  passwordFrom?: string;
  /** The connection file; absent when flags gave everything. */
  file?: string;
  /** The process named in the file. */
  pid?: number;
  /** Found in Rancher Desktop's directory rather than ours. */
  foreign: boolean;
  reached: Reached;
}

/** How the listener is verified before anything is sent. */
export type Reached =
  /** A Unix socket that no other user can have created. Host and port are for messages only. */
  | { by: 'socket'; path: string }
  /** The user named the host or port, or it is this process. */
  | { by: 'word' }
  /** Our service proves that it knows the file's password. `orUser`: a listener that cannot is checked as under `user`. */
  | { by: 'proof'; password: string; orUser?: true }
  /** The listening process belongs to this user. `unseen: 'accepted'`: trust one whose owner the system does not show. */
  | { by: 'user'; unseen?: 'accepted' };
