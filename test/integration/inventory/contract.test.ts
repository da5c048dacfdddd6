import { pythonCandidate, shellCandidate } from '../../support/inventory/candidates.ts';
import { describeConformance } from '../../support/inventory/conformance.ts';

describeConformance('a component in Python', pythonCandidate);
describeConformance('a component in plain shell', shellCandidate);
