/** Names of the images that a node has. The kubelet pulls no other: the node has no registry. */
export const drawbridgeRepository = 'localhost/drawbridge';
export const pauseImage = 'localhost/pause:1';
export const busyboxImage = 'docker.io/library/busybox:1.37';
/** bash and Python, besides what busybox has. */
export const toolsImage = 'localhost/tools:1';
