import { installExtension } from '../../../src/client/extensions.ts';
import { defineCommand } from '../../command.ts';
import { changeExtension } from './call.ts';

export const extensionInstall = defineCommand({
  name: 'extension install',
  summary: 'Install an extension, or another version of one',
  usage: 'IMAGE[:TAG]',
  description: `Fetches the image through the engine that runs and takes the extension out of it. Without a tag the
highest version that the registry and the engine have is taken. Another version that is installed is
replaced; with the same version nothing is done, nothing stands after the colon, and a note says so.`,
  flags: { force: { type: 'boolean', summary: 'Ask nothing; nothing is ever asked, so this changes nothing' } },
  classic: true,
  run: (invocation) =>
    changeExtension(
      { word: 'Installing', meanwhile: 'Fetching', call: installExtension, already: 'is already installed' },
      invocation,
    ),
});
