# libsodium is built with autotools; this builds the part that libzmq's CURVE needs with CMake, like the others.
cmake_minimum_required(VERSION 3.20)
project(libsodium VERSION 1.0.18 LANGUAGES C)

set(VERSION ${PROJECT_VERSION})
set(SODIUM_LIBRARY_VERSION_MAJOR 10)
set(SODIUM_LIBRARY_VERSION_MINOR 3)
set(SODIUM_LIBRARY_MINIMAL_DEF "")
set(include ${CMAKE_CURRENT_SOURCE_DIR}/src/libsodium/include)
configure_file(${include}/sodium/version.h.in ${include}/sodium/version.h @ONLY)

file(GLOB_RECURSE sources src/libsodium/*.c)
add_library(sodium STATIC ${sources})
target_include_directories(sodium PRIVATE ${include} ${include}/sodium)
# Both targets are little-endian, have 64 bits, and have a glibc with these functions.
target_compile_definitions(sodium PRIVATE
  CONFIGURED=1 SODIUM_STATIC=1 NATIVE_LITTLE_ENDIAN=1 HAVE_TI_MODE=1 HAVE_PTHREAD=1 HAVE_SYS_MMAN_H=1 HAVE_MMAP=1
  HAVE_MPROTECT=1 HAVE_MLOCK=1 HAVE_MADVISE=1 HAVE_POSIX_MEMALIGN=1 HAVE_NANOSLEEP=1 HAVE_WEAK_SYMBOLS=1
  HAVE_ATOMIC_OPS=1 HAVE_GETPID=1 _GNU_SOURCE=1)
target_compile_options(sodium PRIVATE -w)

install(TARGETS sodium ARCHIVE DESTINATION lib)
install(FILES ${include}/sodium.h DESTINATION include)
install(DIRECTORY ${include}/sodium DESTINATION include FILES_MATCHING PATTERN *.h)
set(prefix ${CMAKE_INSTALL_PREFIX})
set(exec_prefix ${prefix})
set(libdir ${prefix}/lib)
set(includedir ${prefix}/include)
set(PACKAGE_NAME libsodium)
set(PACKAGE_VERSION ${PROJECT_VERSION})
set(PKGCONFIG_LIBS_PRIVATE "-lpthread")
configure_file(libsodium.pc.in libsodium.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/libsodium.pc DESTINATION lib/pkgconfig)
