/** The lines around the statements of a dump. */

export const containerTitle = "%HostIrContainer {";
export const containerEnd = "} // %HostIrContainer";

export const kernelTitle = "%kernel {";
export const kernelEnd = "} // %kernel";

/** After the container: what its names and axes stand for. */
export const definitionsTitle = "Index definitions:";
export const transformsTitle = "TransformPrinter :";
