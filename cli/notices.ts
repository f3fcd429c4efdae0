import type { StatusDocument } from '../src/reconcile/status-document.ts';
import type { Io } from './command.ts';
import { plainText } from './views/value.ts';

/** What happened at the start of the service and a person should know, on stderr. */
export function showNotices({ notices }: Pick<StatusDocument, 'notices'>, io: Pick<Io, 'err'>): void {
  for (const notice of notices) io.err(`notice: ${plainText(notice)}\n`);
}
