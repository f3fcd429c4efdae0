import { defineGroup } from '../group.ts';
import { profileCheck } from './profile/check.ts';
import { profileUpgrade } from './profile/upgrade.ts';

export const profile = defineGroup({
  name: 'profile',
  summary: 'Check and upgrade settings files',
  description: `Works on files and does not need a service.`,
  flags: {},
  classic: false,
  subcommands: [profileCheck, profileUpgrade],
});
