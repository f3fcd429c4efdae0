import { RdError } from '../errors.ts';
import type { StatusDocument } from '../reconcile/status-document.ts';

type Files = Pick<StatusDocument, 'hostIntegration'>;
type Part = NonNullable<StatusDocument['hostIntegration']>['files'][number]['part'];

/**
 * True once the service has changed the files of the user for this version of the desired state, or could not. True as well if it changes none, and
 * for a release that does not report it.
 */
export function areFilesDone({ hostIntegration }: Files, generation: number): boolean {
  const { observedGeneration = generation } = hostIntegration ?? {};
  return observedGeneration >= generation;
}

export function hasFailedFiles({ hostIntegration }: Files): boolean {
  return hostIntegration?.files.some(({ state }) => state === 'failed') ?? false;
}

/** Returns the error of files that could not be changed, in these parts if they are given; undefined without any. */
export function userFilesError({ hostIntegration }: Files, parts?: readonly Part[]): RdError | undefined {
  const failed = (hostIntegration?.files ?? []).filter(
    ({ part, state }) => state === 'failed' && (parts?.includes(part) ?? true),
  );
  if (failed.length === 0) return undefined;
  const which = failed.length === 1 ? 'one of your files' : `${failed.length} of your files`;
  const otherwise = failed.some(({ part }) => part === 'path')
    ? ' To leave shell files alone: rdctl set --application.path-management-strategy=manual'
    : '';
  return new RdError('ERR_USER_FILES', `The settings are in force, but ${which} could not be changed.`, {
    details: failed.map(({ file, message = '' }) => (message.includes(file) ? message : `${file}: ${message}`)),
    advice: `Make each a plain file that you can write, then repeat the command.${otherwise}`,
  });
}
