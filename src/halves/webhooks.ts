import { createAdmissionApp } from '../admission/app.ts';
import { fenceMetrics, outcomeMetrics } from '../admission/metrics.ts';
import type { AccessReviews, InventoryPorts, ReviewPorts } from '../admission/ports.ts';
import { startAdmissionServer } from '../admission/server.ts';
import { openAdmissionReads } from '../inventory/admission-reads.ts';
import { clock, type Half, type Host, storesProblem } from './host.ts';
import type { Serving } from './serving.ts';

/**
 * Serves the webhooks of the halves that run, in every replica. Rejects with a CodedError when the port cannot be had. `access` is
 * absent when that half does not run.
 */
export async function openWebhooks(
  host: Host,
  { certificate, journal }: Pick<Serving, 'certificate' | 'journal'>,
  access: AccessReviews | undefined,
): Promise<Pick<Half, 'ports' | 'close'>> {
  const { config, metrics, log } = host;
  const reviews: ReviewPorts = { answered: outcomeMetrics(metrics), journal, clock, log };
  const inventory = config.features.includes('inventory') ? inventoryPorts(host, reviews) : undefined;
  const server = await startAdmissionServer({
    app: createAdmissionApp({ access: access && { ...access, ...reviews }, inventory }, reviews),
    certificate: certificate(),
    host: config.bindAddress,
    port: config.port,
    clock,
    log,
  });
  return { ports: { webhooks: server.port }, close: { webhooks: () => server.close() } };
}

function inventoryPorts({ cluster, health, metrics }: Host, reviews: ReviewPorts): InventoryPorts {
  const { reads, stores } = openAdmissionReads(cluster);
  health.ready('inventory-webhooks', () => storesProblem(stores));
  return { ...reviews, ...reads, fenced: fenceMetrics(metrics) };
}
