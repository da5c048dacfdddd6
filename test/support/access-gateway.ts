import { GatewayProcess } from '../../sandbox/gateway-process.ts';
import type { AccessStage } from './access-stage.ts';
import { gatewayRights } from './gateway-stage.ts';

/** The gateway for the server of a stage. The stage must have a plane of its own, or no other stage of the plane may have one. */
export class AccessGateway {
  readonly #stage: AccessStage;
  process: GatewayProcess;

  private constructor(stage: AccessStage, process: GatewayProcess) {
    this.#stage = stage;
    this.process = process;
  }

  static async open(stage: AccessStage, flags: readonly string[] = []): Promise<AccessGateway> {
    const { namespace } = stage.server.installation;
    await stage.apply(...(gatewayRights(namespace) as never[]));
    return new AccessGateway(stage, await GatewayProcess.start(stage.plane, { namespace, flags }));
  }

  /** Starts another process in the place of the last one, which has ended. */
  async restart(flags: readonly string[] = []): Promise<void> {
    const { plane, server } = this.#stage;
    this.process = await GatewayProcess.start(plane, { namespace: server.installation.namespace, flags });
  }

  /** Stops it, and removes what it needed in the cluster. */
  async close(): Promise<void> {
    const { plane } = this.#stage;
    await this.process.stop();
    await plane.kubectl(['delete', 'apiservice', 'v1alpha1.gateway.drawbridge.dev', '--ignore-not-found']);
    await plane.kubectl(['delete', 'clusterrole,clusterrolebinding', 'gateway', '--ignore-not-found']);
  }
}
