import type { Metrics } from '../observe/metrics.ts';

/** Counts the writes of components that were refused, by the code of the refusal. */
export function fenceMetrics(metrics: Metrics): (code: string) => void {
  const rejections = metrics.counter({
    name: 'drawbridge_inventory_fence_rejections_total',
    help: 'Writes of components into entries that were refused.',
    labels: ['cause'],
  });
  return (cause) => rejections.inc({ cause });
}
