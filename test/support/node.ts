import { prepareNode, RealNode, startNode } from '../../sandbox/node/node.ts';

let shared: Promise<RealNode> | undefined;

/**
 * The node of this test run, started at the first call. With DRAWBRIDGE_NODE set to the folder that `make node` prints, tests use that
 * running node.
 */
export function sharedNode(): Promise<RealNode> {
  const directory = process.env['DRAWBRIDGE_NODE'];
  const started = async (): Promise<RealNode> => startNode(await prepareNode((line) => console.error(line)));
  shared ??= directory ? RealNode.attach(directory) : started();
  return shared;
}

/** Ends the node of this test run, if there is one. */
export async function stopSharedNode(): Promise<void> {
  const node = await shared?.catch(() => undefined);
  shared = undefined;
  await node?.stop();
}
