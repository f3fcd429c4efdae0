import { manageAutostart } from './autostart.ts';
import { withdrawContext } from './docker-context.ts';
import { withdrawKubeContext } from './kube-config.ts';
import type { IntegrationOutcome } from './outcome.ts';
import { managePath } from './shell-files.ts';
import type { IntegrationTargets } from './targets.ts';

/** Removes all our content from the files of a user. Never throws; what could not be undone is `failed`. */
export async function undoIntegration(targets: IntegrationTargets): Promise<IntegrationOutcome[]> {
  return [
    await manageAutostart(false, targets),
    ...(await withdrawContext(targets)),
    ...(await withdrawKubeContext(targets)),
    ...(targets.platform === 'win32' ? [] : await managePath('manual', targets)),
  ];
}
