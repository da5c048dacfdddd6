import { stopIdleServers } from './access-stage.ts';
import { stopBindingPlanes } from './binding/planes.ts';
import { stopGatewayPlane } from './gateway-stage.ts';
import { stopSharedNode } from './node.ts';
import { stopSharedPlane } from './plane.ts';

/** Root hooks of the integration run (mocha's `require`), which end the shared resources. */
export const mochaHooks = {
  async afterAll(): Promise<void> {
    await stopIdleServers();
    await Promise.all([stopSharedPlane(), stopBindingPlanes(), stopGatewayPlane(), stopSharedNode()]);
  },
};
