# Debian's SimGrid 3.32 ships pkg-config only. Defines the imported target SimGrid::simgrid.
find_package(PkgConfig QUIET)
pkg_check_modules(PC_SIMGRID QUIET simgrid)
find_path(SimGrid_INCLUDE_DIR simgrid/s4u.hpp HINTS ${PC_SIMGRID_INCLUDEDIR})
find_library(SimGrid_LIBRARY simgrid HINTS ${PC_SIMGRID_LIBDIR})
set(SimGrid_VERSION ${PC_SIMGRID_VERSION})
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(SimGrid REQUIRED_VARS SimGrid_LIBRARY SimGrid_INCLUDE_DIR VERSION_VAR SimGrid_VERSION)
if(SimGrid_FOUND AND NOT TARGET SimGrid::simgrid)
  add_library(SimGrid::simgrid UNKNOWN IMPORTED)
  set_target_properties(SimGrid::simgrid PROPERTIES
    IMPORTED_LOCATION "${SimGrid_LIBRARY}" INTERFACE_INCLUDE_DIRECTORIES "${SimGrid_INCLUDE_DIR}")
endif()
