import { defineGroup } from '../group.ts';
import { imageBuild } from './image/build.ts';
import { imageFetch } from './image/fetch.ts';
import { imageList } from './image/list.ts';
import { imageRemove } from './image/remove.ts';
import { imageSave } from './image/save.ts';

export const image = defineGroup({
  name: 'image',
  summary: 'Guest images for virtual machines',
  description: `A guest image is what a virtual machine boots: a kernel and a disk with Linux and the container engines on it.
It is named by the sum of its files, and never changes. The data of a machine is on a disk of its own.`,
  flags: {},
  classic: false,
  subcommands: [imageBuild, imageFetch, imageList, imageRemove, imageSave],
});
