import { defineGroup } from '../group.ts';
import { profileCheck } from './profile/check.ts';
import { profileUpgrade } from './profile/upgrade.ts';

export const profile = defineGroup({
  name: 'profile',
  summary: 'Check and upgrade the files that hold settings',
  description: 'Works on files alone: no service has to run, and none is asked.',
  flags: {},
  classic: false,
  subcommands: [profileCheck, profileUpgrade],
});
