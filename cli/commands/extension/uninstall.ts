import { uninstallExtension } from '../../../src/client/extensions.ts';
import { defineCommand } from '../../command.ts';
import { changeExtension } from './call.ts';

export const extensionUninstall = defineCommand({
  name: 'extension uninstall',
  summary: 'Uninstall an extension',
  usage: 'IMAGE[:TAG]',
  description: `Removes its files and, with moby, its container; the image stays in the engine. With a tag only that
version is uninstalled. When it is not installed nothing is done,
nothing stands after the colon, and a note says so.`,
  flags: {},
  classic: true,
  run: (invocation) =>
    changeExtension(
      { word: 'Uninstalling', meanwhile: 'Removing', call: uninstallExtension, already: 'is not installed' },
      invocation,
    ),
});
