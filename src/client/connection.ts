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
  /** Found in the compatible application's directory, not in ours. */
  foreign: boolean;
}
