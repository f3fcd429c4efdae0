import { mistake } from '../arguments/arguments.ts';
import { defineGroup } from '../group.ts';
import { extensionInstall } from './extension/install.ts';
import { extensionList } from './extension/list.ts';
import { extensionUninstall } from './extension/uninstall.ts';

export const extension = defineGroup({
  name: 'extension',
  summary: 'Install, list and uninstall extensions',
  description: `An extension is a container image with a file metadata.json in it. Its files are taken out of the
image without running it. A profile does the same for a list: application.extensions.installed.`,
  flags: {},
  classic: true,
  subcommands: [extensionInstall, extensionUninstall, extensionList],
  async otherwise() {
    throw mistake('no subcommand given.\n\nUsage: rdctl extension [install | uninstall | list] [options...]');
  },
});
