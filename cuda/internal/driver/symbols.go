package driver

// A Symbol is a function of a library.
type Symbol struct {
	Name string // name that the library exports
	C    string // C prototype, with * instead of the name
	addr uintptr
}

// The prototypes are checked against NVIDIA's headers by TestPrototypes.

// driverTable lists the functions of libcuda in the order of the constants below.
var driverTable = []Symbol{
	{Name: "cuInit", C: "CUresult (*)(unsigned int)"},
	{Name: "cuDriverGetVersion", C: "CUresult (*)(int *)"},
	{Name: "cuGetErrorName", C: "CUresult (*)(CUresult, const char **)"},
	{Name: "cuGetErrorString", C: "CUresult (*)(CUresult, const char **)"},
	{Name: "cuDeviceGetCount", C: "CUresult (*)(int *)"},
	{Name: "cuDeviceGet", C: "CUresult (*)(CUdevice *, int)"},
	{Name: "cuDeviceGetName", C: "CUresult (*)(char *, int, CUdevice)"},
	{Name: "cuDeviceTotalMem_v2", C: "CUresult (*)(size_t *, CUdevice)"},
	{Name: "cuDeviceGetAttribute", C: "CUresult (*)(int *, CUdevice_attribute, CUdevice)"},
	{Name: "cuDevicePrimaryCtxRetain", C: "CUresult (*)(CUcontext *, CUdevice)"},
	{Name: "cuDevicePrimaryCtxRelease_v2", C: "CUresult (*)(CUdevice)"},
	{Name: "cuCtxSetCurrent", C: "CUresult (*)(CUcontext)"},
	{Name: "cuCtxGetCurrent", C: "CUresult (*)(CUcontext *)"},
	{Name: "cuCtxSynchronize", C: "CUresult (*)(void)"},
	{Name: "cuMemGetInfo_v2", C: "CUresult (*)(size_t *, size_t *)"},
	{Name: "cuMemAlloc_v2", C: "CUresult (*)(CUdeviceptr *, size_t)"},
	{Name: "cuMemFree_v2", C: "CUresult (*)(CUdeviceptr)"},
	{Name: "cuMemAllocHost_v2", C: "CUresult (*)(void **, size_t)"},
	{Name: "cuMemFreeHost", C: "CUresult (*)(void *)"},
	{Name: "cuMemcpyAsync", C: "CUresult (*)(CUdeviceptr, CUdeviceptr, size_t, CUstream)"},
	{Name: "cuMemcpy2DAsync_v2", C: "CUresult (*)(const CUDA_MEMCPY2D *, CUstream)"},
	{Name: "cuMemsetD8Async", C: "CUresult (*)(CUdeviceptr, unsigned char, size_t, CUstream)"},
	{Name: "cuModuleLoadDataEx", C: "CUresult (*)(CUmodule *, const void *, unsigned int, CUjit_option *, void **)"},
	{Name: "cuModuleUnload", C: "CUresult (*)(CUmodule)"},
	{Name: "cuModuleGetFunction", C: "CUresult (*)(CUfunction *, CUmodule, const char *)"},
	{Name: "cuLaunchKernel", C: "CUresult (*)(CUfunction, unsigned int, unsigned int, unsigned int, unsigned int, unsigned int, unsigned int, unsigned int, CUstream, void **, void **)"},
	{Name: "cuStreamCreate", C: "CUresult (*)(CUstream *, unsigned int)"},
	{Name: "cuStreamDestroy_v2", C: "CUresult (*)(CUstream)"},
	{Name: "cuStreamSynchronize", C: "CUresult (*)(CUstream)"},
	{Name: "cuStreamWaitEvent", C: "CUresult (*)(CUstream, CUevent, unsigned int)"},
	{Name: "cuEventCreate", C: "CUresult (*)(CUevent *, unsigned int)"},
	{Name: "cuEventDestroy_v2", C: "CUresult (*)(CUevent)"},
	{Name: "cuEventRecord", C: "CUresult (*)(CUevent, CUstream)"},
	{Name: "cuEventSynchronize", C: "CUresult (*)(CUevent)"},
}

const (
	cuInit = iota
	cuDriverGetVersion
	cuGetErrorName
	cuGetErrorString
	cuDeviceGetCount
	cuDeviceGet
	cuDeviceGetName
	cuDeviceTotalMem
	cuDeviceGetAttribute
	cuDevicePrimaryCtxRetain
	cuDevicePrimaryCtxRelease
	cuCtxSetCurrent
	cuCtxGetCurrent
	cuCtxSynchronize
	cuMemGetInfo
	cuMemAlloc
	cuMemFree
	cuMemAllocHost
	cuMemFreeHost
	cuMemcpyAsync
	cuMemcpy2DAsync
	cuMemsetD8Async
	cuModuleLoadDataEx
	cuModuleUnload
	cuModuleGetFunction
	cuLaunchKernel
	cuStreamCreate
	cuStreamDestroy
	cuStreamSynchronize
	cuStreamWaitEvent
	cuEventCreate
	cuEventDestroy
	cuEventRecord
	cuEventSynchronize
)

// blasTable lists the functions of cuBLAS.
var blasTable = []Symbol{
	{Name: "cublasCreate_v2", C: "cublasStatus_t (*)(cublasHandle_t *)"},
	{Name: "cublasDestroy_v2", C: "cublasStatus_t (*)(cublasHandle_t)"},
	{Name: "cublasGetVersion_v2", C: "cublasStatus_t (*)(cublasHandle_t, int *)"},
	{Name: "cublasSetStream_v2", C: "cublasStatus_t (*)(cublasHandle_t, cudaStream_t)"},
	{Name: "cublasSetMathMode", C: "cublasStatus_t (*)(cublasHandle_t, cublasMath_t)"},
	{Name: "cublasSetAtomicsMode", C: "cublasStatus_t (*)(cublasHandle_t, cublasAtomicsMode_t)"},
	{Name: "cublasSgemm_v2", C: "cublasStatus_t (*)(cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int, int, const float *, const float *, int, const float *, int, const float *, float *, int)"},
	{Name: "cublasDgemm_v2", C: "cublasStatus_t (*)(cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int, int, const double *, const double *, int, const double *, int, const double *, double *, int)"},
	{Name: "cublasGemmEx", C: "cublasStatus_t (*)(cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int, int, const void *, const void *, cudaDataType, int, const void *, cudaDataType, int, const void *, void *, cudaDataType, int, cublasComputeType_t, cublasGemmAlgo_t)"},
	{Name: "cublasSgemv_v2", C: "cublasStatus_t (*)(cublasHandle_t, cublasOperation_t, int, int, const float *, const float *, int, const float *, int, const float *, float *, int)"},
	{Name: "cublasDgemv_v2", C: "cublasStatus_t (*)(cublasHandle_t, cublasOperation_t, int, int, const double *, const double *, int, const double *, int, const double *, double *, int)"},
	{Name: "cublasSsyrk_v2", C: "cublasStatus_t (*)(cublasHandle_t, cublasFillMode_t, cublasOperation_t, int, int, const float *, const float *, int, const float *, float *, int)"},
	{Name: "cublasDsyrk_v2", C: "cublasStatus_t (*)(cublasHandle_t, cublasFillMode_t, cublasOperation_t, int, int, const double *, const double *, int, const double *, double *, int)"},
	{Name: "cublasSsymm_v2", C: "cublasStatus_t (*)(cublasHandle_t, cublasSideMode_t, cublasFillMode_t, int, int, const float *, const float *, int, const float *, int, const float *, float *, int)"},
	{Name: "cublasDsymm_v2", C: "cublasStatus_t (*)(cublasHandle_t, cublasSideMode_t, cublasFillMode_t, int, int, const double *, const double *, int, const double *, int, const double *, double *, int)"},
	{Name: "cublasStrsv_v2", C: "cublasStatus_t (*)(cublasHandle_t, cublasFillMode_t, cublasOperation_t, cublasDiagType_t, int, const float *, int, float *, int)"},
	{Name: "cublasDtrsv_v2", C: "cublasStatus_t (*)(cublasHandle_t, cublasFillMode_t, cublasOperation_t, cublasDiagType_t, int, const double *, int, double *, int)"},
	{Name: "cublasStrsm_v2", C: "cublasStatus_t (*)(cublasHandle_t, cublasSideMode_t, cublasFillMode_t, cublasOperation_t, cublasDiagType_t, int, int, const float *, const float *, int, float *, int)"},
	{Name: "cublasDtrsm_v2", C: "cublasStatus_t (*)(cublasHandle_t, cublasSideMode_t, cublasFillMode_t, cublasOperation_t, cublasDiagType_t, int, int, const double *, const double *, int, double *, int)"},
}

const (
	cublasCreate = iota
	cublasDestroy
	cublasGetVersion
	cublasSetStream
	cublasSetMathMode
	cublasSetAtomicsMode
	cublasSgemm
	cublasDgemm
	cublasGemmEx
	cublasSgemv
	cublasDgemv
	cublasSsyrk
	cublasDsyrk
	cublasSsymm
	cublasDsymm
	cublasStrsv
	cublasDtrsv
	cublasStrsm
	cublasDtrsm
)

// solverTable lists the functions of cuSOLVER.
var solverTable = []Symbol{
	{Name: "cusolverDnCreate", C: "cusolverStatus_t (*)(cusolverDnHandle_t *)"},
	{Name: "cusolverDnDestroy", C: "cusolverStatus_t (*)(cusolverDnHandle_t)"},
	{Name: "cusolverDnSetStream", C: "cusolverStatus_t (*)(cusolverDnHandle_t, cudaStream_t)"},
	{Name: "cusolverDnCreateParams", C: "cusolverStatus_t (*)(cusolverDnParams_t *)"},
	{Name: "cusolverDnDestroyParams", C: "cusolverStatus_t (*)(cusolverDnParams_t)"},
	{Name: "cusolverDnXpotrf_bufferSize", C: "cusolverStatus_t (*)(cusolverDnHandle_t, cusolverDnParams_t, cublasFillMode_t, int64_t, cudaDataType, const void *, int64_t, cudaDataType, size_t *, size_t *)"},
	{Name: "cusolverDnXpotrf", C: "cusolverStatus_t (*)(cusolverDnHandle_t, cusolverDnParams_t, cublasFillMode_t, int64_t, cudaDataType, void *, int64_t, cudaDataType, void *, size_t, void *, size_t, int *)"},
}

const (
	cusolverCreate = iota
	cusolverDestroy
	cusolverSetStream
	cusolverCreateParams
	cusolverDestroyParams
	cusolverXpotrfBufferSize
	cusolverXpotrf
)
